package shelduck.bridge.scan;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;
import org.roaringbitmap.longlong.Roaring64NavigableMap;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Opens one file in an executor: through {@link KeptRows} if it has deletes; otherwise unchanged,
 * or not at all if only deleted rows are wanted.
 */
public class ReadKept extends AbstractFunction1 implements Serializable {
  private final ReadWhole untouched;
  private final ReadWhole withPosition;
  private final boolean counts;
  private final DataType[] types;
  private final int position;
  private final int deletes;
  private final Broadcast conf;
  private final boolean wantsDeleted;
  private final String table;

  /**
   * {@code counts}: every row comes, and its position is known without a column. {@code types} are the
   * columns of {@code withPosition}; {@code deletes} is a constant's index.
   */
  public ReadKept(ReadWhole untouched, ReadWhole withPosition, boolean counts, DataType[] types,
      int position, int deletes, Broadcast conf, boolean wantsDeleted, String table) {
    this.untouched = untouched;
    this.withPosition = withPosition;
    this.counts = counts;
    this.types = types;
    this.position = position;
    this.deletes = deletes;
    this.conf = conf;
    this.wantsDeleted = wantsDeleted;
    this.table = table;
  }

  public Object apply(Object opened) {
    PartitionedFile file = (PartitionedFile) opened;
    InternalRow constants = file.partitionValues();
    if (constants.isNullAt(deletes) && constants.isNullAt(deletes + 2)) {
      return undeleted(file);
    }
    Roaring64NavigableMap deleted = DeletedPositions.of(constants, deletes,
        ReadWhole.known(file, LakeFileIndex.ROWS), ReadWhole.known(file, LakeFileIndex.DEAD),
        ReadWhole.key(file, LakeFileIndex.DELETES_KEY), table,
        ((SerializableConfiguration) conf.value()).value());
    if (deleted.isEmpty()) {
      return undeleted(file);
    }
    boolean isHidden = untouched != withPosition;
    if (counts || (isHidden && untouched.readsAllOf(file))) {
      CheckedRows all = (CheckedRows) untouched.apply(file);
      int counted = KeptRows.COUNTED;
      return new KeptRows(all, types, counted, all.first(), false, deleted, wantsDeleted);
    }
    Iterator rows = (Iterator) withPosition.apply(file);
    return new KeptRows(rows, types, position, 0L, isHidden, deleted, wantsDeleted);
  }

  private Object undeleted(PartitionedFile file) {
    return wantsDeleted
        ? CollectionConverters.asScala(Collections.emptyIterator())
        : new WholeBatches((Iterator) untouched.apply(file));
  }

  /** The batches of a file without deletes, in the vectors that a scan of other files has. */
  private static final class WholeBatches extends AbstractIterator implements Closeable {
    private final Iterator all;

    WholeBatches(Iterator all) {
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
}
