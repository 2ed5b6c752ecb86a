package shelduck.bridge;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/** The rows of a Parquet reader; at its end there must be as many as the catalog says. */
public class CheckedRows extends AbstractIterator implements Closeable {
  private final Iterator all;
  private final long expected;
  private final String file;
  private final String table;
  private long seen = 0;

  public CheckedRows(Iterator all, long expected, String file, String table) {
    this.all = all;
    this.expected = expected;
    this.file = file;
    this.table = table;
  }

  public boolean hasNext() {
    if (all.hasNext()) {
      return true;
    }
    if (seen != expected) {
      throw DamagedLake.error("data file " + file + " of " + table + " has " + seen
          + " rows, but the catalog says " + expected + "; restore the file, or correct"
          + " record_count in ducklake_data_file");
    }
    return false;
  }

  public Object next() {
    Object read = all.next();
    seen += read instanceof ColumnarBatch ? ((ColumnarBatch) read).numRows() : 1;
    return read;
  }

  public void close() throws IOException {
    if (all instanceof Closeable) {
      ((Closeable) all).close();
    }
  }
}
