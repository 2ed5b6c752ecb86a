package shelduck.bridge.scan;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import shelduck.bridge.plans.HiddenField;
import shelduck.bridge.write.SealedFiles;

/**
 * What the footer of an opened file says, against what the catalog says. Spark has read the footer; if
 * this Spark's reader does not show it, nothing is compared.
 */
public final class OpenedFile {
  private final ParquetMetadata footer;
  private final String what;

  private OpenedFile(ParquetMetadata footer, String what) {
    this.footer = footer;
    this.what = what;
  }

  /** Whether batches of this Spark's reader show the footer. */
  public static boolean isShown() {
    try {
      HiddenField.of(RecordReaderIterator.class, "rowReader");
      Class groups = HiddenField.of(VectorizedParquetRecordReader.class, "reader").getType();
      return groups.getSimpleName().equals("ParquetRowGroupReader");
    } catch (NoSuchFieldException other) {
      return false;
    }
  }

  /** Null if the rows do not show the footer. */
  public static OpenedFile of(Object rows, String what) {
    try {
      Object reader = HiddenField.value(rows, "rowReader", "reader", "reader");
      return new OpenedFile(((ParquetFileReader) reader).getFooter(), what);
    } catch (ReflectiveOperationException other) {
      return null;
    } catch (ClassCastException other) {
      return null;
    }
  }

  /** A reader of a file, which compares the pages with their sums; {@code key} may be null. */
  public static ParquetFileReader checked(Path path, byte[] key, Configuration conf)
      throws IOException {
    ParquetReadOptions options =
        HadoopReadOptions.builder(conf).usePageChecksumVerification(true).build();
    InputFile file = key == null ? HadoopInputFile.fromPath(path, conf)
        : SealedFiles.opened(path, key, conf);
    return ParquetFileReader.open(file, options);
  }

  /** The position of the first row of the part of the file that was opened. */
  public long firstRow() {
    List groups = footer.getBlocks();
    return groups.isEmpty() ? 0L : ((BlockMetaData) groups.get(0)).getRowIndexOffset();
  }

  /** The file must have so many rows; it was opened as a whole. */
  public void requireRows(long expected) {
    long rows = 0;
    for (BlockMetaData each : footer.getBlocks()) {
      rows += each.getRowCount();
    }
    if (rows != expected) {
      throw DamagedLake.rows(what, rows, expected);
    }
  }

  /** The file must have these columns, in this order. */
  public void requireColumns(String[] names) {
    MessageType schema = footer.getFileMetaData().getSchema();
    boolean isSame = schema.getFieldCount() == names.length;
    for (int i = 0; isSame && i < names.length; i++) {
      isSame = schema.getFieldName(i).equals(names[i]);
    }
    if (!isSame) {
      throw DamagedLake.error(what + " has other columns than it had when it joined the table, so it"
          + " is a file of another table, or is damaged" + DamagedLake.RESTORE);
    }
  }
}
