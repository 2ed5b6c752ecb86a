package shelduck.bridge.scan;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function1;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.python.TextRows;
import shelduck.bridge.write.SealedFiles;

/**
 * Opens one file, or a part of it, so that each row group is in exactly one part, whatever the
 * file's size in the catalog is. The footer is compared with the
 * catalog; if one task reads all rows, they are counted, too. Errors tell of the file.
 */
public class ReadWhole extends AbstractFunction1 implements Serializable {
  private final Function1 read;
  private final boolean readsAll;
  private final int counted;
  private final String table;
  private final String[][] columns;

  /**
   * {@code readsAll}: no filter lets the reader skip row groups. {@code counted} is where the rows get
   * their positions, negative for nowhere; they come in batches. {@code columns} are rows of text: the
   * names of the columns of files.
   */
  public ReadWhole(Function1 read, boolean readsAll, int counted, String table, String columns) {
    this.read = read;
    this.readsAll = readsAll;
    this.counted = counted;
    this.table = table;
    List rows = TextRows.rows(columns);
    this.columns = (String[][]) rows.toArray(new String[rows.size()][]);
  }

  public Object apply(Object opened) {
    return rows((PartitionedFile) opened, null);
  }

  /** The rows of a file; with {@code wanted}, which may be null, perhaps only those. */
  public CheckedRows rows(PartitionedFile file, ChosenRows wanted) {
    boolean isEnd = isEnd(file);
    long expected = isEnd && file.start() == 0 ? known(file, LakeFileIndex.ROWS) : -1L;
    String what = "data file " + file.filePath() + " of " + table;
    Object rows;
    try {
      rows = opened(isEnd ? reachingToTheEnd(file) : file);
    } catch (Throwable error) {
      throw DamagedLake.reading(error, what);
    }
    OpenedFile found = OpenedFile.of(rows, what);
    long layout = known(file, LakeFileIndex.COLUMNS);
    if (found != null && layout >= 0) {
      found.requireColumns(columns[(int) layout]);
    }
    if (found != null && expected >= 0) {
      found.requireRows(expected);
    }
    long first = file.start() == 0 ? 0L : found == null ? -1L : found.firstRow();
    boolean isWhole = readsAll && !(wanted != null && wanted.replace(rows));
    return new CheckedRows(
        (Iterator) rows, isWhole ? expected : -1L, new TextBatches(counted), first, what);
  }

  /** The rows of a file; Spark opens an encrypted one by its key. */
  private Object opened(PartitionedFile file) {
    byte[] key = key(file, LakeFileIndex.KEY);
    if (key == null) {
      return read.apply(file);
    }
    SparkPath sealed = SparkPath.fromPath(SealedFiles.sealed(file.toPath()));
    SealedFiles.hold(key);
    try {
      return read.apply(new PartitionedFile(file.partitionValues(), sealed, file.start(),
          file.length(), new String[0], file.modificationTime(), file.fileSize(),
          file.otherConstantMetadataColumnValues()));
    } finally {
      SealedFiles.hold(null);
    }
  }

  /** Whether every row of the file comes, one after the other. */
  public boolean readsAllOf(PartitionedFile file) {
    return readsAll && file.start() == 0 && isEnd(file);
  }

  private static boolean isEnd(PartitionedFile file) {
    return file.start() + file.length() >= file.fileSize();
  }

  /** A number that the catalog has of a file, negative if it has none. */
  public static long known(PartitionedFile file, String name) {
    Option found = file.otherConstantMetadataColumnValues().get(name);
    return found.isEmpty() ? -1L : ((Long) found.get()).longValue();
  }

  /** The key of a file or its delete file, null if that is not encrypted. */
  public static byte[] key(PartitionedFile file, String name) {
    Option found = file.otherConstantMetadataColumnValues().get(name);
    return found.isEmpty() ? null : (byte[]) found.get();
  }

  /**
   * Spark assigns a row group to the part that holds its middle; nothing comes after the last part.
   */
  private static PartitionedFile reachingToTheEnd(PartitionedFile file) {
    return new PartitionedFile(file.partitionValues(), file.filePath(), file.start(),
        Long.MAX_VALUE - file.start(), new String[0], file.modificationTime(), file.fileSize(),
        file.otherConstantMetadataColumnValues());
  }

  /**
   * The rows of a Parquet reader, whose errors tell of the file. At its end there must be as many as
   * the catalog says.
   */
  public static class CheckedRows extends AbstractIterator implements Closeable {
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
}
