package shelduck.bridge.scan;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;
import org.roaringbitmap.longlong.LongIterator;
import org.roaringbitmap.longlong.Roaring64NavigableMap;
import scala.collection.AbstractIterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.ScalaSeq;

/**
 * Opens one file in an executor, through {@link KeptRows}; not at all if it has no deletes and only
 * deleted rows are wanted.
 */
public class ReadKept extends AbstractFunction1 implements Serializable {
  private final ReadWhole untouched;
  private final ReadWhole withPosition;
  private final boolean counts;
  private final boolean hides;
  private final DataType[] types;
  private final int position;
  private final int deletes;
  private final Broadcast conf;
  private final ReadWhole some;
  private final String table;

  /**
   * {@code counts}: every row comes, and its position is known without a column. {@code hides}: nobody
   * asked for that column. {@code types} are the columns of {@code withPosition}; {@code deletes} is a
   * constant's index. {@code some} has these columns, too, and reads only rows near the deleted ones, if
   * those are wanted; else it is null.
   */
  public ReadKept(ReadWhole untouched, ReadWhole withPosition, boolean counts, boolean hides,
      DataType[] types, int position, int deletes, Broadcast conf, ReadWhole some, String table) {
    this.untouched = untouched;
    this.withPosition = withPosition;
    this.counts = counts;
    this.hides = hides;
    this.types = types;
    this.position = position;
    this.deletes = deletes;
    this.conf = conf;
    this.some = some;
    this.table = table;
  }

  public Object apply(Object opened) {
    PartitionedFile file = (PartitionedFile) opened;
    Roaring64NavigableMap deleted = DeletedPositions.of(file.partitionValues(), deletes,
        ReadWhole.known(file, LakeFileIndex.ROWS), ReadWhole.known(file, LakeFileIndex.DEAD),
        ReadWhole.key(file, LakeFileIndex.DELETES_KEY), table,
        ((SerializableConfiguration) conf.value()).value());
    boolean isWhole = deleted.isEmpty();
    boolean wantsDeleted = some != null;
    if (isWhole && wantsDeleted) {
      return CollectionConverters.asScala(Collections.emptyIterator());
    }
    ChosenRows chosen = wantsDeleted ? new ChosenRows(deleted) : null;
    if (chosen != null && chosen.areFewOf(ReadWhole.known(file, LakeFileIndex.ROWS))) {
      return new KeptRows(some.rows(file, chosen), types, position, 0L, hides, deleted, true);
    }
    if (isWhole || counts || (hides && untouched.readsAllOf(file))) {
      ReadWhole.CheckedRows all = (ReadWhole.CheckedRows) untouched.apply(file);
      // Of a file without deletes, nobody asks where its rows are.
      long first = isWhole ? 0L : all.first();
      return new KeptRows(all, types, KeptRows.COUNTED, first, false, deleted, wantsDeleted);
    }
    ReadWhole.CheckedRows rows = (ReadWhole.CheckedRows) withPosition.apply(file);
    return new KeptRows(rows, types, position, 0L, hides, deleted, wantsDeleted);
  }

  /**
   * The batches or rows of a Parquet reader, without the rows at deleted positions; or only those
   * rows, to see what is deleted.
   */
  public static class KeptRows extends AbstractIterator implements Closeable {
    /** In place of a position: every row of the file comes, so rows are counted. */
    public static final int COUNTED = -1;
    private final ReadWhole.CheckedRows all;
    private final DataType[] types;
    private final int position;
    private final boolean hidePosition;
    private final LongIterator deleted;
    private final boolean wantsDeleted;
    private long nextDeleted = -1;
    private long last;
    private UnsafeProjection narrow;
    private Object ahead;

    /**
     * {@code position} is the column of the row index, hidden if only this class asked for it; rows that
     * are counted begin at {@code first}.
     */
    public KeptRows(ReadWhole.CheckedRows all, DataType[] types, int position, long first,
        boolean hidePosition, Roaring64NavigableMap deleted, boolean wantsDeleted) {
      this.all = all;
      this.types = types;
      this.position = position;
      this.last = first - 1;
      this.hidePosition = hidePosition;
      this.deleted = deleted.getLongIterator();
      this.wantsDeleted = wantsDeleted;
    }

    public boolean hasNext() {
      while (ahead == null && all.hasNext()) {
        Object read = all.next();
        ahead = read instanceof ColumnarBatch ? kept((ColumnarBatch) read) : kept((InternalRow) read);
      }
      return ahead != null;
    }

    public Object next() {
      if (!hasNext()) {
        throw new java.util.NoSuchElementException();
      }
      Object row = ahead;
      ahead = null;
      return row;
    }

    public void close() throws IOException {
      all.close();
    }

    /** The first deleted position that is not before {@code row}; rows must come in file order. */
    private long deletedFrom(long row) {
      if (row <= last) {
        throw new IllegalStateException("row " + row + " of a Parquet file came after row " + last);
      }
      while (nextDeleted < row) {
        nextDeleted = deleted.hasNext() ? deleted.next() : Long.MAX_VALUE;
      }
      return nextDeleted;
    }

    private InternalRow kept(InternalRow row) {
      long at = position == COUNTED ? last + 1 : row.getLong(position);
      boolean isDeleted = deletedFrom(at) == at;
      last = at;
      if (isDeleted != wantsDeleted) {
        return null;
      }
      if (!hidePosition) {
        return row;
      }
      if (narrow == null) {
        ArrayList columns = new ArrayList();
        for (int i = 0; i < types.length; i++) {
          if (i != position) {
            columns.add(new BoundReference(i, types[i], true));
          }
        }
        narrow = UnsafeProjection.create(ScalaSeq.of(columns));
      }
      return narrow.apply(row);
    }

    /** Sets the rows of a batch that come; its positions are all from {@code first} to {@code end}. */
    private int inRuns(long first, long end, int[] rows) {
      int count = 0;
      int next = 0;
      long dead = deletedFrom(first);
      while (dead <= end) {
        int row = (int) (dead - first);
        if (wantsDeleted) {
          rows[count++] = row;
        } else {
          while (next < row) {
            rows[count++] = next++;
          }
          next = row + 1;
        }
        last = dead;
        dead = deletedFrom(dead + 1);
      }
      while (!wantsDeleted && next <= end - first) {
        rows[count++] = next++;
      }
      return count;
    }

    /** The same where a filter has left positions out. */
    private int oneByOne(ColumnVector positions, int size, int[] rows) {
      int count = 0;
      for (int i = 0; i < size; i++) {
        long at = positions.getLong(i);
        if ((deletedFrom(at) == at) == wantsDeleted) {
          rows[count++] = i;
        }
        last = at;
      }
      return count;
    }

    private ColumnarBatch kept(ColumnarBatch batch) {
      int size = batch.numRows();
      if (size == 0) {
        return null;
      }
      ColumnVector positions = position == COUNTED ? null : batch.column(position);
      int[] rows = null;
      int count = size;
      long first = positions == null ? last + 1 : positions.getLong(0);
      long end = positions == null ? last + size : positions.getLong(size - 1);
      if (deletedFrom(first) <= end) {
        rows = new int[size];
        count = end - first == size - 1 ? inRuns(first, end, rows) : oneByOne(positions, size, rows);
      } else if (wantsDeleted) {
        count = 0;
      }
      last = end;
      if (count == 0) {
        return null;
      }
      ColumnVector[] columns = new ColumnVector[batch.numCols() - (hidePosition ? 1 : 0)];
      for (int c = 0; c < columns.length; c++) {
        ColumnVector column = batch.column(hidePosition && c >= position ? c + 1 : c);
        columns[c] = new KeptVector(column, count == size ? null : rows, count);
      }
      return new ColumnarBatch(columns, count);
    }
  }
}
