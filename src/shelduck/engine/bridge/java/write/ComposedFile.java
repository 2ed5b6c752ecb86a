package shelduck.bridge.write;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import org.apache.commons.lang3.reflect.MethodUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.io.DelegatingSeekableInputStream;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.parquet.io.SeekableInputStream;

/**
 * A new object of ranges of an older one, which the store copies by itself, and of what a writer adds.
 * Ranges that are too small for a copy are read, and go up with the bytes around them.
 */
public class ComposedFile extends PositionOutputStream implements OutputFile {
  private static final int MAGIC = 4;

  private final UploadedParts parts;
  private final SeekableInputStream old;
  private final byte[] block = new byte[UploadedParts.LEAST + (3 << 20)];
  private final String path;
  private int filled;
  private long position;
  private long start;
  private long end;
  private boolean isCopied;

  private ComposedFile(UploadedParts parts, SeekableInputStream old, String path) {
    this.parts = parts;
    this.old = old;
    this.path = path;
  }

  /** {@code size} bytes of the older file are needed. Null if the store is to copy none of them. */
  public static ComposedFile of(Path from, SeekableInputStream old, long size, String path,
      Configuration conf) throws IOException {
    if (size < UploadedParts.LEAST) {
      return null;
    }
    UploadedParts parts = UploadedParts.begin(from, new Path(path), conf);
    return parts == null ? null : new ComposedFile(parts, old, path);
  }

  /** What is written next are these bytes of the older file. */
  public void copy(long from, long length) throws IOException {
    if (!isCopied || end != from) {
      settle();
      start = from;
    }
    end = from + length;
    isCopied = true;
  }

  /** What is written next is new. */
  public void add() throws IOException {
    settle();
  }

  /** Bytes that nobody looks at, for a writer that copies from a stream: the store has them. */
  public SeekableInputStream unread() {
    return new Unread();
  }

  public void complete() throws IOException {
    parts.add(block, filled);
    parts.complete();
  }

  public void abort() {
    parts.abort();
  }

  public long getPos() {
    return position;
  }

  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  public void write(byte[] bytes, int from, int length) throws IOException {
    position += length;
    for (int done = 0; done < length && !isCopied;) {
      int some = Math.min(length - done, room());
      System.arraycopy(bytes, from + done, block, filled, some);
      filled += some;
      done += some;
    }
  }

  /** Copy or read the range that is known to be complete now. */
  private void settle() throws IOException {
    if (!isCopied) {
      return;
    }
    isCopied = false;
    if (position == end && filled == MAGIC && start == MAGIC) {
      // Both files begin with the same bytes.
      start = 0;
      filled = 0;
    }
    if (filled > 0) {
      read(Math.min(end - start, Math.max(UploadedParts.LEAST - filled, 0)));
    }
    if (end - start >= UploadedParts.LEAST) {
      if (filled > 0) {
        parts.add(block, filled);
        filled = 0;
      }
      start = parts.copy(start, end);
    }
    read(end - start);
  }

  private void read(long length) throws IOException {
    old.seek(start);
    for (long left = length; left > 0;) {
      int some = (int) Math.min(left, room());
      old.readFully(block, filled, some);
      filled += some;
      left -= some;
    }
    start += length;
  }

  /** How many bytes the block takes; a full one goes up. */
  private int room() throws IOException {
    if (filled == block.length) {
      parts.add(block, filled);
      filled = 0;
    }
    return block.length - filled;
  }

  public PositionOutputStream create(long blockSize) {
    return this;
  }

  public PositionOutputStream createOrOverwrite(long blockSize) {
    return this;
  }

  public boolean supportsBlockSize() {
    return false;
  }

  public long defaultBlockSize() {
    return 0;
  }

  public String getPath() {
    return path;
  }

  private static final class Unread extends DelegatingSeekableInputStream {
    Unread() {
      super(new ByteArrayInputStream(new byte[0]));
    }

    public long getPos() {
      return 0;
    }

    public void seek(long position) {
    }

    public int read(byte[] into, int from, int length) {
      return length;
    }
  }

  /**
   * An upload to S3 in parts: ranges of an older object, which the store copies by itself, and new
   * bytes. It speaks to the client of the S3A connector. Spark does not carry the classes of that
   * client, so they are called by their names.
   */
  public static class UploadedParts {
    /** A setting of Hadoop: with false, no store is asked to copy by itself. */
    public static final String SETTING = "shelduck.copies.in.store";
    /** The store takes no smaller part than this, except as the last one. */
    public static final int LEAST = 5 << 20;
    /** The store copies up to 5 GiB at once, and smaller parts need less time for each request. */
    private static final long MOST = 1L << 30;
    private static final String STORE = "org.apache.hadoop.fs.s3a.S3AFileSystem";
    private static final String[] CHECKSUMS = {"CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"};
    /** Where one of these is set, each request must say so. S3A does; then it writes all bytes. */
    private static final String[] FOR_EACH_REQUEST = {
      "fs.s3a.encryption.algorithm", "fs.s3a.server-side-encryption-algorithm",
      "fs.s3a.acl.default", "fs.s3a.create.storage.class", "fs.s3a.requester.pays.enabled"
    };

    private final Object client;
    private final ClassLoader loader;
    private final Object[] target;
    private final Object[] source;
    private final ArrayList done = new ArrayList();
    private boolean copies = true;

    private UploadedParts(FileSystem store, Path from, Path to) throws ReflectiveOperationException {
      loader = store.getClass().getClassLoader();
      client = MethodUtils.invokeMethod(get(store, "getS3AInternals"), true, "getAmazonS3Client",
          new Object[] {"copy in the store"});
      Object[] place = {"bucket", bucket(to), "key", key(to)};
      Object begun = ask("createMultipartUpload", "CreateMultipartUploadRequest", place, null);
      Object[] upload = {"uploadId", get(begun, "uploadId")};
      target = and(place, upload);
      source = and(upload, new Object[] {
        "sourceBucket", bucket(from), "sourceKey", key(from),
        "destinationBucket", bucket(to), "destinationKey", key(to)
      });
    }

    /**
     * Begin an object that gets parts of another one. Null if the store does not do that: then its
     * caller writes all bytes.
     */
    public static UploadedParts begin(Path from, Path to, Configuration conf) throws IOException {
      FileSystem store = to.getFileSystem(conf);
      if (!store.getClass().getName().equals(STORE) || !from.getFileSystem(conf).equals(store)
          || !conf.getBoolean(SETTING, true)) {
        return null;
      }
      for (String each : FOR_EACH_REQUEST) {
        String value = store.getConf().get(each, "");
        if (!value.isEmpty() && !value.equals("false")) {
          return null;
        }
      }
      try {
        return new UploadedParts(store, from, to);
      } catch (ReflectiveOperationException refused) {
        return null;
      }
    }

    /**
     * Let the store copy a range, which has at least {@code LEAST} bytes. Returns up to where: if the
     * store refuses, its caller uploads the rest.
     */
    public long copy(long start, long end) {
      long at = start;
      try {
        // Equal parts, so that none is too small.
        long parts = (end - start + MOST - 1) / MOST;
        for (long i = 1; i <= parts && copies; i++) {
          long next = start + (end - start) * i / parts;
          Object[] range = {"copySourceRange", "bytes=" + at + "-" + (next - 1)};
          Object[] what = and(and(source, range), numbered());
          took(get(ask("uploadPartCopy", "UploadPartCopyRequest", what, null), "copyPartResult"));
          at = next;
        }
      } catch (ReflectiveOperationException refused) {
        copies = false;
      }
      return at;
    }

    /** Upload new bytes: at least {@code LEAST}, unless they are the last. */
    public void add(byte[] bytes, int length) throws IOException {
      byte[] sent = Arrays.copyOf(bytes, length);
      try {
        Object body = MethodUtils.invokeStaticMethod(
            named("core.sync.RequestBody"), "fromBytes", new Object[] {sent});
        took(ask("uploadPart", "UploadPartRequest", and(target, numbered()), body));
      } catch (ReflectiveOperationException error) {
        throw failed(error);
      }
    }

    /** Make the object of all parts. */
    public void complete() throws IOException {
      try {
        Object all = made("CompletedMultipartUpload", new Object[] {"parts", done});
        ask("completeMultipartUpload", "CompleteMultipartUploadRequest",
            and(target, new Object[] {"multipartUpload", all}), null);
      } catch (ReflectiveOperationException error) {
        throw failed(error);
      }
    }

    /** Leave nothing of the upload. If the store does not answer, its own clean-up does that. */
    public void abort() {
      try {
        ask("abortMultipartUpload", "AbortMultipartUploadRequest", target, null);
      } catch (ReflectiveOperationException unreachable) {
        return;
      }
    }

    /** Remember what the store says of a part. */
    private void took(Object part) throws ReflectiveOperationException {
      Object[] told = and(numbered(), new Object[] {"eTag", get(part, "eTag")});
      for (String each : CHECKSUMS) {
        String name = "checksum" + each;
        try {
          Object sum = get(part, name);
          told = sum == null ? told : and(told, new Object[] {name, sum});
        } catch (NoSuchMethodException older) {
          continue;
        }
      }
      done.add(made("CompletedPart", told));
    }

    private Object[] numbered() {
      return new Object[] {"partNumber", Integer.valueOf(done.size() + 1)};
    }

    private Object ask(String method, String request, Object[] what, Object body)
        throws ReflectiveOperationException {
      Object given = made(request, what);
      return MethodUtils.invokeMethod(
          client, true, method, body == null ? new Object[] {given} : new Object[] {given, body});
    }

    /** An object of the client's model from names and values in turns. */
    private Object made(String name, Object[] what) throws ReflectiveOperationException {
      Object builder = MethodUtils.invokeStaticMethod(
          named("services.s3.model." + name), "builder", new Object[0]);
      for (int i = 0; i < what.length; i += 2) {
        MethodUtils.invokeMethod(builder, true, (String) what[i], new Object[] {what[i + 1]});
      }
      return get(builder, "build");
    }

    private Class named(String name) throws ClassNotFoundException {
      return Class.forName("software.amazon.awssdk." + name, true, loader);
    }

    private static Object get(Object owner, String name) throws ReflectiveOperationException {
      return MethodUtils.invokeMethod(owner, true, name, new Object[0]);
    }

    private static Object[] and(Object[] some, Object[] more) {
      Object[] all = Arrays.copyOf(some, some.length + more.length);
      System.arraycopy(more, 0, all, some.length, more.length);
      return all;
    }

    private static String bucket(Path path) {
      return path.toUri().getHost() == null ? path.toUri().getAuthority() : path.toUri().getHost();
    }

    private static String key(Path path) {
      return path.toUri().getPath().substring(1);
    }

    private IOException failed(ReflectiveOperationException error) {
      Throwable cause =
          error instanceof InvocationTargetException ? error.getCause() : error;
      return new IOException("s3a://" + target[1] + "/" + target[3] + ": " + cause, cause);
    }
  }
}
