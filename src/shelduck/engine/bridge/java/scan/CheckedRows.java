package shelduck.bridge.scan;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The rows of a Parquet reader, whose errors tell of the file. At its end there must be as many as
 * the catalog says.
 */
public class CheckedRows extends AbstractIterator implements Closeable {
  private final Iterator all;
  private final long expected;
  private final String what;
  private final TextBatches batches;
  private final long first;
  private long seen = 0;

  /**
   * {@code expected} is negative if nobody knows how many rows come, {@code first}, the position of
   * the first, if it is not known; {@code what} is the file in messages.
   */
  public CheckedRows(Iterator all, long expected, TextBatches batches, long first, String what) {
    this.all = all;
    this.expected = expected;
    this.batches = batches;
    this.first = first;
    this.what = what;
  }

  /** The position of the first row, if every row comes. */
  public long first() {
    if (first < 0) {
      throw new IllegalStateException("Spark does not say where a part of " + what + " begins");
    }
    return first;
  }

  public boolean hasNext() {
    if (hasMore()) {
      return true;
    }
    if (expected >= 0 && seen != expected) {
      throw DamagedLake.rows(what, seen, expected);
    }
    return false;
  }

  private boolean hasMore() {
    try {
      return all.hasNext();
    } catch (Throwable error) {
      throw DamagedLake.reading(error, what);
    }
  }

  public Object next() {
    Object read = read();
    if (!(read instanceof ColumnarBatch)) {
      seen++;
      return read;
    }
    ColumnarBatch batch = (ColumnarBatch) read;
    long before = seen;
    seen += batch.numRows();
    if (batches.areCounted()) {
      batches.begin(first() + before);
    }
    return batches.of(batch);
  }

  private Object read() {
    try {
      return all.next();
    } catch (Throwable error) {
      throw DamagedLake.reading(error, what);
    }
  }

  public void close() throws IOException {
    if (all instanceof Closeable) {
      ((Closeable) all).close();
    }
  }
}
