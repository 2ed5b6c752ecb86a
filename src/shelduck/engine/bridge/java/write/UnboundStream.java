package shelduck.bridge.write;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.parquet.crypto.AesMode;
import org.apache.parquet.crypto.ModuleCipherFactory;
import org.apache.parquet.format.BlockCipher;
import org.apache.parquet.format.FileCryptoMetaData;
import org.apache.parquet.format.Util;

/**
 * Takes an encrypted Parquet file and writes it as DuckDB does. The standard binds each part (module)
 * to its place in the file, which goes into its tag. DuckDB 1.5 counts places wrongly when a query has
 * a filter; in its own files, no part has one, and the size of a page is that without its encryption.
 * Each module is written again, and takes the same bytes.
 */
final class UnboundStream extends FilterOutputStream {
  private static final int NONCE = 12;
  private static final int TAG = 16;
  /** A number in Thrift, whose id is the next one. */
  private static final byte I32 = 0x15;
  private final byte[] key;
  private final BlockCipher.Encryptor encryptor;
  private byte[] held = new byte[4];
  private int filled;
  /** Where the part ends that is held, as far as it is known. */
  private int wanted = 4;
  private boolean isBegun;
  /** The next part is the header of a page, or comes behind all of them. */
  private boolean isHeader = true;
  private boolean hasPages = true;

  UnboundStream(OutputStream out, byte[] key) {
    super(out);
    this.key = key;
    encryptor = ModuleCipherFactory.getEncryptor(AesMode.GCM, key);
  }

  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  public void write(byte[] bytes, int from, int length) throws IOException {
    for (int done = 0; done < length;) {
      int some = Math.min(length - done, wanted - filled);
      if (filled + some > held.length) {
        held = Arrays.copyOf(held, Math.max(filled + some, Math.min(wanted, 2 * held.length)));
      }
      System.arraycopy(bytes, from + done, held, filled, some);
      filled += some;
      done += some;
      if (filled == wanted) {
        advance();
      }
    }
  }

  private void advance() throws IOException {
    if (!isBegun) {
      out.write(held, 0, 4);
      isBegun = true;
    } else if (wanted == 4) {
      // What stands before the footer is no length, and larger than any.
      wanted = 4 + PlainView.little(held).getInt(0);
      return;
    } else {
      out.write(unbound(0, filled));
    }
    filled = 0;
    wanted = 4;
  }

  private byte[] unbound(int at, int end) throws IOException {
    try {
      Cipher counter = Cipher.getInstance("AES/CTR/NoPadding");
      byte[] start = ByteBuffer.allocate(16).put(held, at + 4, NONCE).putInt(2).array();
      counter.init(Cipher.DECRYPT_MODE, new SecretKeySpec(key, "AES"), new IvParameterSpec(start));
      int from = at + 4 + NONCE;
      byte[] plain = counter.doFinal(held, from, end - TAG - from);
      hasPages &= !isHeader || (plain[0] == I32 && plain[2] == I32);
      if (hasPages && isHeader) {
        shorten(plain);
      }
      isHeader = !hasPages || !isHeader;
      return encryptor.encrypt(plain, null);
    } catch (GeneralSecurityException error) {
      throw new IOException(error);
    }
  }

  /** The third number of a header is the size; it keeps its bytes. */
  private static void shorten(byte[] header) {
    int at = 3;
    while (header[at++] < 0) {
      continue;
    }
    int end = ++at;
    long size = 0;
    do {
      size |= (header[end] & 0x7FL) << (7 * (end - at));
    } while (header[end++] < 0);
    size -= 2 * (4 + NONCE + TAG);
    for (; at < end; at++) {
      header[at] = (byte) ((size & 0x7F) | (at < end - 1 ? 0x80 : 0));
      size >>>= 7;
    }
  }

  public void close() throws IOException {
    if (filled > 0) {
      ByteArrayInputStream end = new ByteArrayInputStream(held, 0, filled);
      FileCryptoMetaData crypto = Util.readFileCryptoMetaData(end);
      // It takes the same bytes, so that the file has the size that its writer counts.
      crypto.setKey_metadata(crypto.getEncryption_algorithm().getAES_GCM_V1().getAad_file_unique());
      crypto.getEncryption_algorithm().getAES_GCM_V1().unsetAad_file_unique();
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      Util.writeFileCryptoMetaData(crypto, bytes);
      bytes.write(unbound(filled - end.available(), filled - 8));
      bytes.write(held, filled - 8, 8);
      out.write(bytes.toByteArray());
      filled = 0;
    }
    super.close();
  }
}
