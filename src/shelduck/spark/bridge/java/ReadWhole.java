package shelduck.bridge;

import java.io.Serializable;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Opens one file, or a part of it, so that each row group is in exactly one part, whatever the
 * file's size in the catalog is. If one task reads all rows, they are counted.
 */
public class ReadWhole extends AbstractFunction1 implements Serializable {
  private final Function1 read;
  private final boolean readsAll;
  private final String table;

  /** {@code readsAll}: no filter lets the reader skip row groups. */
  public ReadWhole(Function1 read, boolean readsAll, String table) {
    this.read = read;
    this.readsAll = readsAll;
    this.table = table;
  }

  public Object apply(Object opened) {
    PartitionedFile file = (PartitionedFile) opened;
    if (file.start() + file.length() < file.fileSize()) {
      return read.apply(file);
    }
    Object rows = read.apply(reachingToTheEnd(file));
    Option expected = file.otherConstantMetadataColumnValues().get(LakeFileIndex.ROWS);
    if (!readsAll || file.start() > 0 || expected.isEmpty()) {
      return rows;
    }
    return new CheckedRows(
        (Iterator) rows, ((Long) expected.get()).longValue(), file.filePath().toString(), table);
  }

  /**
   * Spark assigns a row group to the part that holds its middle; nothing comes after the last part.
   */
  private static PartitionedFile reachingToTheEnd(PartitionedFile file) {
    return new PartitionedFile(file.partitionValues(), file.filePath(), file.start(),
        Long.MAX_VALUE - file.start(), new String[0], file.modificationTime(), file.fileSize(),
        file.otherConstantMetadataColumnValues());
  }
}
