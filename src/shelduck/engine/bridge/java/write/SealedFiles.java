package shelduck.bridge.write;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.security.SecureRandom;
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.apache.parquet.crypto.EncryptionPropertiesFactory;
import org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.InputFile;

/**
 * The encrypted files of a lake, each with a key of its own, as Parquet reads and writes them: readers
 * get a {@link PlainView}. A thread holds the key of the file that it opens or begins: no path, plan
 * or configuration has one.
 */
public class SealedFiles extends FilterFileSystem implements EncryptionPropertiesFactory {
  /** An option of a scan or a write: files are encrypted. */
  public static final String OPTION = "shelduck.encrypted";
  private static final String SCHEME = "shelduck-sealed";
  private static final String FACTORY = "parquet.crypto.factory.class";
  private static final ThreadLocal HELD = new ThreadLocal();
  private byte[] key;
  private PlainView view;

  /** Lets Parquet find encrypted files by this configuration. */
  public static Configuration known(Configuration conf) {
    conf.setClassLoader(SealedFiles.class.getClassLoader());
    conf.set("fs." + SCHEME + ".impl", SealedFiles.class.getName());
    conf.setBoolean("fs." + SCHEME + ".impl.disable.cache", true);
    return conf;
  }

  /** Lets Parquet encrypt what it writes. */
  public static void encrypt(Configuration conf) {
    known(conf).set(FACTORY, SealedFiles.class.getName());
    // They would be sums of encrypted bytes, which the reader does not see; tags prove more.
    conf.setBoolean("parquet.page.write-checksum.enabled", false);
    // Pages of version 2 have parts that are not encrypted.
    conf.set("parquet.writer.version", "v1");
  }

  /** A key for a file to write, null if files are not encrypted. */
  public static byte[] fresh(Configuration conf) {
    if (!SealedFiles.class.getName().equals(conf.get(FACTORY))) {
      return null;
    }
    byte[] key = new byte[16];
    new SecureRandom().nextBytes(key);
    return key;
  }

  /** The key of the file that this thread opens or begins next, null for none. */
  public static void hold(byte[] key) {
    HELD.set(key);
  }

  public static byte[] key(String text) {
    return Base64.getDecoder().decode(text);
  }

  /** A file as this file system names it. */
  public static Path sealed(Path path) {
    URI uri = path.toUri();
    String home = (uri.getScheme() == null ? "" : uri.getScheme()) + "+"
        + (uri.getAuthority() == null ? "" : uri.getAuthority());
    return new Path(SCHEME, home, uri.getPath());
  }

  private static Path real(URI sealed) {
    String[] home = sealed.getAuthority().split("\\+", 2);
    return new Path(home[0].isEmpty() ? null : home[0], home[1].isEmpty() ? null : home[1],
        sealed.getPath());
  }

  /** A file for a reader. */
  public static InputFile opened(Path path, byte[] key, Configuration conf) throws IOException {
    hold(key);
    try {
      return HadoopInputFile.fromPath(sealed(path), known(new Configuration(conf)));
    } finally {
      hold(null);
    }
  }

  /** A file that somebody encrypted by the standard, as DuckDB does it. */
  public static byte[] unbound(byte[] file, byte[] key) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(file.length);
    OutputStream out = new UnboundStream(bytes, key);
    out.write(file);
    out.close();
    return bytes.toByteArray();
  }

  public FileEncryptionProperties getFileEncryptionProperties(
      Configuration conf, Path file, WriteSupport.WriteContext context) {
    return FileEncryptionProperties.builder((byte[]) HELD.get()).build();
  }

  public void initialize(URI sealed, Configuration conf) throws IOException {
    setConf(conf);
    fs = real(sealed).getFileSystem(conf);
    key = (byte[]) HELD.get();
  }

  public URI getUri() {
    return URI.create(SCHEME + ":///");
  }

  public Path makeQualified(Path sealed) {
    return sealed;
  }

  public FileStatus getFileStatus(Path sealed) throws IOException {
    FileStatus found = fs.getFileStatus(real(sealed.toUri()));
    FSDataInputStream in = fs.open(found.getPath());
    try {
      view = new PlainView(in, found.getLen(), key);
    } finally {
      in.close();
    }
    return new FileStatus(view.length(), false, 1, found.getBlockSize(),
        found.getModificationTime(), sealed);
  }

  /** Parquet has asked for the status before. */
  public FSDataInputStream open(Path sealed, int buffer) throws IOException {
    return new FSDataInputStream(view.over(fs.open(real(sealed.toUri()), buffer)));
  }

  /** Parquet calls {@link #open} then. */
  public FutureDataInputStreamBuilder openFile(Path sealed) {
    throw new UnsupportedOperationException();
  }

  public FSDataOutputStream create(Path sealed, FsPermission permission, boolean overwrite,
      int buffer, short replication, long block, Progressable progress) throws IOException {
    OutputStream out = fs.create(
        real(sealed.toUri()), permission, overwrite, buffer, replication, block, progress);
    return new FSDataOutputStream(new UnboundStream(out, key), null);
  }
}
