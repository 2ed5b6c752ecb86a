package shelduck.bridge.write;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.parquet.crypto.AesMode;
import org.apache.parquet.crypto.ModuleCipherFactory;
import org.apache.parquet.format.BlockCipher;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.ColumnMetaData;
import org.apache.parquet.format.FileCryptoMetaData;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.format.Util;

/**
 * A file that is encrypted as DuckDB does, as a plain file. Its parts (modules) are a length, a nonce,
 * the bytes and a tag each. A chunk of a column begins where it did, and ends with bytes that nobody
 * reads; the footer is another one.
 */
final class PlainView extends FSInputStream {
  private static final int TAIL = 65536;
  private final BlockCipher.Decryptor decryptor;
  /** The lengths of chunks by their starts. */
  private final TreeMap chunks = new TreeMap();
  private final long footerAt;
  private final byte[] footer;
  private FSDataInputStream in;
  private byte[] held;
  private long heldAt;
  private long position;

  /** {@code size} is that of the encrypted file. */
  PlainView(FSDataInputStream from, long size, byte[] key) throws IOException {
    byte[] tail = tail(from, size, TAIL);
    int length = size < 12 ? -1 : little(tail).getInt(tail.length - 8);
    if (length < 0 || length > size - 12 || tail[tail.length - 1] != 'E') {
      throw new IOException("it is not an encrypted Parquet file");
    }
    tail = length + 8 > tail.length ? tail(from, size, length + 8) : tail;
    ByteArrayInputStream end = new ByteArrayInputStream(tail, tail.length - 8 - length, length);
    FileCryptoMetaData crypto = Util.readFileCryptoMetaData(end);
    if (!crypto.getEncryption_algorithm().isSetAES_GCM_V1()
        || crypto.getEncryption_algorithm().getAES_GCM_V1().isSetAad_file_unique()) {
      throw new IOException("it is encrypted in another way than DuckDB does");
    }
    decryptor = ModuleCipherFactory.getDecryptor(AesMode.GCM, key);
    FileMetaData known = Util.readFileMetaData(end, decryptor, null);
    for (RowGroup group : known.getRow_groups()) {
      for (ColumnChunk chunk : group.getColumns()) {
        show(chunk);
      }
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Util.writeFileMetaData(known, bytes);
    bytes.write(little(new byte[8]).putInt(bytes.size()).put(new byte[] {'P', 'A', 'R', '1'}).array());
    footer = bytes.toByteArray();
    footerAt = size - 8 - length;
  }

  static ByteBuffer little(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static byte[] tail(FSDataInputStream from, long size, int most) throws IOException {
    byte[] tail = new byte[(int) Math.min(size, most)];
    from.readFully(size - tail.length, tail);
    return tail;
  }

  private void show(ColumnChunk chunk) {
    ColumnMetaData about = chunk.getMeta_data();
    boolean hasDictionary = about.isSetDictionary_page_offset() && about.getDictionary_page_offset() > 0;
    long start = hasDictionary ? about.getDictionary_page_offset() : about.getData_page_offset();
    chunks.put(Long.valueOf(start), Long.valueOf(about.getTotal_compressed_size()));
    chunk.unsetCrypto_metadata();
    // They tell where pages are, or are beside chunks.
    chunk.unsetColumn_index_offset();
    chunk.unsetOffset_index_offset();
    about.unsetBloom_filter_offset();
  }

  PlainView over(FSDataInputStream stream) {
    in = stream;
    return this;
  }

  long length() {
    return footerAt + footer.length;
  }

  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
  }

  public int read(byte[] into, int from, int length) throws IOException {
    if (held == null || position < heldAt || position >= heldAt + held.length) {
      hold();
    }
    int some = (int) Math.min(length, heldAt + held.length - position);
    if (some <= 0) {
      return length == 0 ? 0 : -1;
    }
    System.arraycopy(held, (int) (position - heldAt), into, from, some);
    position += some;
    return some;
  }

  /** Get the chunk around the position, or what is between chunks. */
  private void hold() throws IOException {
    Map.Entry found = chunks.floorEntry(Long.valueOf(position));
    heldAt = found == null ? 0 : ((Long) found.getKey()).longValue();
    long end = found == null ? 0 : heldAt + ((Long) found.getValue()).longValue();
    if (position >= footerAt) {
      heldAt = footerAt;
      held = footer;
    } else if (position < end) {
      held = new byte[(int) (end - heldAt)];
      in.readFully(heldAt, held);
      decrypt();
    } else {
      Long next = (Long) chunks.higherKey(Long.valueOf(position));
      heldAt = position;
      held = new byte[(int) Math.min(TAIL, (next == null ? footerAt : next.longValue()) - position)];
      System.arraycopy(new byte[] {'P', 'A', 'R', '1'}, 0, held, 0, position == 0 ? 4 : 0);
    }
  }

  private void decrypt() throws IOException {
    boolean isHeader = true;
    int to = 0;
    for (int at = 0; at < held.length;) {
      int length = 4 + little(held).getInt(at);
      if (length < 4 || length > held.length - at) {
        throw new IOException("a part of it has a wrong length");
      }
      byte[] plain = decryptor.decrypt(Arrays.copyOfRange(held, at, at + length), null);
      ByteArrayInputStream left = new ByteArrayInputStream(plain);
      if (isHeader) {
        // Parquet's writer puts zeros behind headers.
        Util.readPageHeader(left);
      }
      int size = isHeader ? plain.length - left.available() : plain.length;
      System.arraycopy(plain, 0, held, to, size);
      to += size;
      at += length;
      isHeader = !isHeader;
    }
  }

  public void seek(long to) throws IOException {
    if (to < 0 || to > length()) {
      throw new EOFException("it ends before " + to);
    }
    position = to;
  }

  public long getPos() {
    return position;
  }

  public boolean seekToNewSource(long target) {
    return false;
  }

  public void close() throws IOException {
    in.close();
  }
}
