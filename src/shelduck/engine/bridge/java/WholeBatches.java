package shelduck.bridge;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/** The batches of a file without deletes, in the vectors that a scan of other files has. */
public class WholeBatches extends AbstractIterator implements Closeable {
  private final Iterator all;

  public WholeBatches(Iterator all) {
    this.all = all;
  }

  public boolean hasNext() {
    return all.hasNext();
  }

  public Object next() {
    Object read = all.next();
    if (!(read instanceof ColumnarBatch)) {
      return read;
    }
    ColumnarBatch batch = (ColumnarBatch) read;
    ColumnVector[] columns = new ColumnVector[batch.numCols()];
    for (int c = 0; c < columns.length; c++) {
      columns[c] = new KeptVector(batch.column(c), null, batch.numRows());
    }
    return new ColumnarBatch(columns, batch.numRows());
  }

  public void close() throws IOException {
    if (all instanceof Closeable) {
      ((Closeable) all).close();
    }
  }
}
