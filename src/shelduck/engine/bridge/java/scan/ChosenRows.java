package shelduck.bridge.scan;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.PrimitiveIterator;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
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
 * The row groups that Spark's reader of batches gets, in place of its own: of each only the rows at
 * some positions, so that it decodes no others. A group without such rows, or a page of a file with a
 * page index, is not read at all.
 */
public final class ChosenRows implements InvocationHandler {
  /** If more than one row in so many is wanted, it is faster to decode all. */
  private static final int SPARSE = 8;

  private final Object before;
  private final ParquetFileReader file;
  /** The wanted rows of each group, from its first. */
  private final long[][] wanted;
  private int next = 0;
  private PageReadStore current;

  private ChosenRows(Object before, ParquetFileReader file, Roaring64NavigableMap positions) {
    this.before = before;
    this.file = file;
    List groups = file.getRowGroups();
    wanted = new long[groups.size()][];
    LongIterator each = positions.getLongIterator();
    long at = -1;
    for (int i = 0; i < wanted.length; i++) {
      BlockMetaData group = (BlockMetaData) groups.get(i);
      long first = group.getRowIndexOffset();
      long end = first + group.getRowCount();
      LongStream.Builder rows = LongStream.builder();
      while (at < end) {
        if (at >= first) {
          rows.add(at - first);
        }
        at = each.hasNext() ? each.next() : Long.MAX_VALUE;
      }
      wanted[i] = rows.build().toArray();
    }
  }

  /**
   * Whether the rows of an opened file are now at least those at the positions, without most others.
   * A reader that is not known keeps all of them.
   */
  static boolean choose(Object rows, Roaring64NavigableMap wanted) {
    try {
      Object reader = HiddenField.value(rows, "rowReader");
      Field groups = HiddenField.of(reader.getClass(), "reader");
      Field total = HiddenField.of(reader.getClass(), "totalRowCount");
      Object before = groups.get(reader);
      ParquetFileReader file = (ParquetFileReader) HiddenField.value(before, "reader");
      ChosenRows chosen = new ChosenRows(before, file, wanted);
      Class kind = groups.getType();
      groups.set(reader, Proxy.newProxyInstance(kind.getClassLoader(), new Class[] {kind}, chosen));
      total.setLong(reader, chosen.count());
      return true;
    } catch (ReflectiveOperationException other) {
      return false;
    } catch (RuntimeException other) {
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

  private PageReadStore group() throws IOException {
    if (current != null) {
      current.close();
    }
    while (next < wanted.length) {
      int number = next++;
      if (wanted[number].length > 0) {
        current = isSparse(number) ? file.readFilteredRowGroup(number, ranges(number))
            : file.readRowGroup(number);
        return current;
      }
    }
    return null;
  }

  private BlockMetaData of(int number) {
    return (BlockMetaData) file.getRowGroups().get(number);
  }

  private long count() {
    long count = 0;
    for (int i = 0; i < wanted.length; i++) {
      boolean isPart = wanted[i].length == 0 || isSparse(i);
      count += isPart ? wanted[i].length : of(i).getRowCount();
    }
    return count;
  }

  private boolean isSparse(int number) {
    boolean hasIndex = true;
    for (ColumnChunkMetaData chunk : of(number).getColumns()) {
      hasIndex &= chunk.getOffsetIndexReference() != null;
    }
    return hasIndex && wanted[number].length * (long) SPARSE <= of(number).getRowCount();
  }

  private RowRanges ranges(int number) {
    Places places = new Places(wanted[number]);
    PrimitiveIterator.OfInt each = IntStream.range(0, places.getPageCount()).iterator();
    return RowRanges.create(of(number).getRowCount(), each, places);
  }

  /** Positions in the form in which Parquet makes ranges: each is a page of one row. */
  private static final class Places implements OffsetIndex {
    private final long[] rows;

    Places(long[] rows) {
      this.rows = rows;
    }

    public int getPageCount() {
      return rows.length;
    }

    public long getOffset(int page) {
      return 0L;
    }

    public int getCompressedPageSize(int page) {
      return 0;
    }

    public long getFirstRowIndex(int page) {
      return rows[page];
    }

    public long getLastRowIndex(int page, long total) {
      return rows[page];
    }
  }
}
