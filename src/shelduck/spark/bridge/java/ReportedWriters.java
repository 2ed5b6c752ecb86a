package shelduck.bridge;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;

/** Makes a {@link ReportedWriter} for each file, whose name no other file of the write has. */
public class ReportedWriters extends OutputWriterFactory {
  /** An option of a write: the name under which the driver finds the reports. */
  public static final String OPTION = "shelduck.reports";
  private static final ConcurrentHashMap KNOWN = new ConcurrentHashMap();

  private final OutputWriterFactory factory;
  private final CollectionAccumulator reports;
  /** Each task has this object for itself, but gives files of several partitions the same name. */
  private int made;

  public ReportedWriters(OutputWriterFactory factory, SparkContext context, String name) {
    this.factory = factory;
    this.reports = context.collectionAccumulator();
    KNOWN.put(name, reports);
  }

  /** The reports of a write, a row of name and footer for each file; they are given once. */
  public static String taken(String name) {
    CollectionAccumulator found = (CollectionAccumulator) KNOWN.remove(name);
    StringBuilder text = new StringBuilder();
    if (found != null) {
      List rows = found.value();
      for (int i = 0; i < rows.size(); i++) {
        text.append((String) rows.get(i)).append('\n');
      }
    }
    return text.toString();
  }

  public String getFileExtension(TaskAttemptContext context) {
    return factory.getFileExtension(context);
  }

  public OutputWriter newInstance(String path, StructType rows, TaskAttemptContext context) {
    int dot = path.indexOf('.', path.lastIndexOf('/'));
    String own = path.substring(0, dot) + '-' + context.getTaskAttemptID().getId() + '-' + made
        + path.substring(dot);
    made++;
    return new ReportedWriter(
        factory.newInstance(own, rows, context), own, context.getConfiguration(), reports);
  }
}
