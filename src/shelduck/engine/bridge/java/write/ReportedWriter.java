package shelduck.bridge.write;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.util.CollectionAccumulator;
import shelduck.bridge.python.TextRows;

/**
 * Writes a file and reports what it is, so that nobody has to look at it. Spark keeps the reports of
 * the task that succeeded, and of no other attempt.
 */
public class ReportedWriter extends OutputWriter {
  private final OutputWriter writer;
  private final String path;
  private final String name;
  private final String working;
  private final Configuration conf;
  private final CollectionAccumulator reports;
  private boolean closed;

  /**
   * {@code name} is what the driver calls the file, {@code working} the directories in which Spark
   * would have put it below that of the write.
   */
  public ReportedWriter(OutputWriter writer, String path, String name, String working,
      Configuration conf, CollectionAccumulator reports) {
    this.writer = writer;
    this.path = path;
    this.name = name;
    this.working = working;
    this.conf = conf;
    this.reports = reports;
  }

  public void write(InternalRow row) {
    writer.write(row);
  }

  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    writer.close();
    TaskContext task = TaskContext.get();
    boolean again = task.attemptNumber() > 0 || task.stageAttemptNumber() > 0;
    long size;
    try {
      size = size();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    reports.add(
        TextRows.encoded(name, working, again ? "again" : "", Long.toString(size), footer()));
  }

  public String path() {
    return path;
  }

  /** The bytes that were written. The storage is asked if Spark's writer does not show them. */
  private long size() throws IOException {
    if (writer instanceof CopyingWriter) {
      return ((CopyingWriter) writer).size();
    }
    try {
      Object file = field(field(field(writer, "recordWriter"), "internalWriter"), "parquetFileWriter");
      return ((ParquetFileWriter) file).getPos();
    } catch (ReflectiveOperationException other) {
      Path place = new Path(path);
      return place.getFileSystem(conf).getFileStatus(place).getLen();
    }
  }

  /** Empty if Spark's writer does not show it: then the file is read. */
  private String footer() {
    try {
      ParquetMetadata found;
      if (writer instanceof CopyingWriter) {
        found = ((CopyingWriter) writer).footer();
      } else {
        Object internal = field(field(writer, "recordWriter"), "internalWriter");
        Method method = internal.getClass().getDeclaredMethod("getFooter", new Class[0]);
        method.setAccessible(true);
        found = (ParquetMetadata) method.invoke(internal, new Object[0]);
      }
      int most = conf.getInt(ParquetOutputFormat.STATISTICS_TRUNCATE_LENGTH,
          ParquetProperties.DEFAULT_STATISTICS_TRUNCATE_LENGTH);
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      Util.writeFileMetaData(
          new ParquetMetadataConverter(most).toParquetMetadata(1, found), bytes);
      return Base64.getEncoder().encodeToString(bytes.toByteArray());
    } catch (ReflectiveOperationException other) {
      return "";
    } catch (IOException other) {
      return "";
    }
  }

  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    Field found = owner.getClass().getDeclaredField(name);
    found.setAccessible(true);
    return found.get(owner);
  }
}
