package shelduck.bridge.write;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
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
}
