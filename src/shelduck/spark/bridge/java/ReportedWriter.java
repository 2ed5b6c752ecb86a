package shelduck.bridge;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Writes a file and reports its name and its footer, so that nobody has to read it. Spark keeps the
 * reports of the task that succeeded, and of no other attempt.
 */
public class ReportedWriter extends OutputWriter {
  private final OutputWriter writer;
  private final String path;
  private final Configuration conf;
  private final CollectionAccumulator reports;
  private boolean closed;

  public ReportedWriter(OutputWriter writer, String path, Configuration conf,
      CollectionAccumulator reports) {
    this.writer = writer;
    this.path = path;
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
    String footer = footer();
    String name = path.substring(path.lastIndexOf('/') + 1);
    reports.add(TextRows.encoded(name) + '\t' + (footer == null ? "" : footer));
  }

  public String path() {
    return path;
  }

  /** Null if Spark's writer does not show it: then the file is read. */
  private String footer() {
    try {
      Object internal = field(field(writer, "recordWriter"), "internalWriter");
      Method method = internal.getClass().getDeclaredMethod("getFooter", new Class[0]);
      method.setAccessible(true);
      ParquetMetadata found = (ParquetMetadata) method.invoke(internal, new Object[0]);
      int most = conf.getInt(ParquetOutputFormat.STATISTICS_TRUNCATE_LENGTH,
          ParquetProperties.DEFAULT_STATISTICS_TRUNCATE_LENGTH);
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      Util.writeFileMetaData(
          new ParquetMetadataConverter(most).toParquetMetadata(1, found), bytes);
      return Base64.getEncoder().encodeToString(bytes.toByteArray());
    } catch (ReflectiveOperationException other) {
      return null;
    } catch (IOException other) {
      return null;
    }
  }

  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    Field found = owner.getClass().getDeclaredField(name);
    found.setAccessible(true);
    return found.get(owner);
  }
}
