package shelduck.bridge;

import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes a {@link ChangeWriter} for each file that Spark begins. */
public class ChangeWriters extends OutputWriterFactory {
  private final OutputWriterFactory factory;
  private final StructType schema;

  /** {@code schema} are the columns of the table and the row id. */
  public ChangeWriters(OutputWriterFactory factory, StructType schema) {
    this.factory = factory;
    this.schema = schema;
  }

  public String getFileExtension(TaskAttemptContext context) {
    return factory.getFileExtension(context);
  }

  public OutputWriter newInstance(String path, StructType rows, TaskAttemptContext context) {
    return new ChangeWriter(factory, schema, path, context);
  }
}
