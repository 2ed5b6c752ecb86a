package shelduck.bridge;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the {@link CopyingWriter} of each task, which copies one file. */
public class CopyingWriters extends OutputWriterFactory {
  private final OutputWriterFactory factory;
  private final StructType schema;

  /** {@code schema} are the new columns. */
  public CopyingWriters(OutputWriterFactory factory, StructType schema) {
    this.factory = factory;
    this.schema = schema;
  }

  public String getFileExtension(TaskAttemptContext context) {
    return factory.getFileExtension(context);
  }

  public OutputWriter newInstance(String path, StructType rows, TaskAttemptContext context) {
    Configuration conf = context.getConfiguration();
    // Raw: a plain get would read ${...} in a name as a variable.
    String sources = conf.getRaw(CopyingWriter.OPTION);
    int task = context.getTaskAttemptID().getTaskID().getId();
    try {
      return new CopyingWriter(path, conf, schema, TextRows.row(sources, task));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
