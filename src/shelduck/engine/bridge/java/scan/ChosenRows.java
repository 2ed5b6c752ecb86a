package shelduck.bridge.scan;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.stream.IntStream;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.parquet.internal.filter2.columnindex.RowRanges;
import org.roaringbitmap.longlong.LongIterator;
import org.roaringbitmap.longlong.Roaring64NavigableMap;
import shelduck.bridge.plans.HiddenField;

/**
 * The row groups that Spark's reader of batches gets, in place of its own: of each only the rows near
 * some positions. A group without such rows, or a page of a file with a page index, is not read.
 */
public final class ChosenRows implements InvocationHandler {
  /** Rows between two positions are decoded, too, if there are fewer: to skip them takes as long. */
  private static final int NEAR = 1000;

  private final Places all = new Places();
  /** Those of each row group, from its first row. */
  private final ArrayList<RowRanges> groups = new ArrayList<RowRanges>();
  private Object before;
  private ParquetFileReader file;
  private int next = 0;
  private PageReadStore current;

  public ChosenRows(Roaring64NavigableMap positions) {
    LongIterator each = positions.getLongIterator();
    while (each.hasNext()) {
      all.add(each.next());
    }
  }

  /** Whether they are less than half of so many rows. */
  public boolean areFewOf(long rows) {
    return all.ranges().rowCount() * 2 < rows;
  }

  /**
   * Whether the rows of an opened file are now these. A reader that is not known keeps all of them.
   */
  public boolean replace(Object rows) {
    try {
      Object reader = HiddenField.value(rows, "rowReader");
      Field readers = HiddenField.of(reader.getClass(), "reader");
      Field total = HiddenField.of(reader.getClass(), "totalRowCount");
      before = readers.get(reader);
      file = (ParquetFileReader) HiddenField.value(before, "reader");
      long count = 0;
      for (BlockMetaData group : file.getRowGroups()) {
        RowRanges some = of(group);
        groups.add(some);
        count += some.rowCount();
      }
      Class kind = readers.getType();
      readers.set(reader, Proxy.newProxyInstance(kind.getClassLoader(), new Class[] {kind}, this));
      total.setLong(reader, count);
      return true;
    } catch (Exception other) {
      return false;
    }
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("readNextRowGroup")) {
      return group();
    }
    method.setAccessible(true);
    return method.invoke(before, arguments);
  }

  /** The next group with some of the rows; null at the end. */
  private PageReadStore group() throws IOException {
    if (current != null) {
      current.close();
    }
    current = null;
    while (current == null && next < groups.size()) {
      current = file.readFilteredRowGroup(next, (RowRanges) groups.get(next));
      next++;
    }
    return current;
  }

  /** The rows of a group that come: all, if some do and nothing says where its pages are. */
  private RowRanges of(BlockMetaData group) {
    RowRanges found = all.within(group.getRowIndexOffset(), group.getRowCount()).ranges();
    for (ColumnChunkMetaData chunk : group.getColumns()) {
      if (found.rowCount() > 0 && chunk.getOffsetIndexReference() == null) {
        return RowRanges.createSingle(group.getRowCount());
      }
    }
    return found;
  }

  /** Ranges of rows in the form in which Parquet takes them: each as if it were a page. */
  private static final class Places implements OffsetIndex {
    /** The first and the last row of each. */
    private final ArrayList<long[]> ranges = new ArrayList<long[]>();

    void add(long row) {
      long[] last = ranges.isEmpty() ? null : (long[]) ranges.get(ranges.size() - 1);
      if (last == null || row - last[1] > NEAR) {
        ranges.add(new long[] {row, row});
      } else {
        last[1] = row;
      }
    }

    Places within(long first, long rows) {
      Places found = new Places();
      for (long[] range : ranges) {
        long begin = Math.max(range[0] - first, 0L);
        long end = Math.min(range[1] - first, rows - 1);
        if (begin <= end) {
          found.ranges.add(new long[] {begin, end});
        }
      }
      return found;
    }

    RowRanges ranges() {
      return RowRanges.create(Long.MAX_VALUE, IntStream.range(0, ranges.size()).iterator(), this);
    }

    public int getPageCount() {
      return ranges.size();
    }

    public long getOffset(int page) {
      return 0L;
    }

    public int getCompressedPageSize(int page) {
      return 0;
    }

    public long getFirstRowIndex(int page) {
      return ((long[]) ranges.get(page))[0];
    }

    public long getLastRowIndex(int page, long rows) {
      return ((long[]) ranges.get(page))[1];
    }
  }
}
