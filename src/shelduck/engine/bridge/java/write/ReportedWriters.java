package shelduck.bridge.write;

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
  private final FinalPlaces places;
  /** Each task has this object for itself, but gives files of several partitions the same name. */
  private int made;
  private transient AttemptFiles begun;

  /** {@code places} may be null: then files stay below the directory of the write. */
  public ReportedWriters(
      OutputWriterFactory factory, SparkContext context, String name, FinalPlaces places) {
    this.factory = factory;
    this.places = places;
    this.reports = context.collectionAccumulator();
    KNOWN.put(name, reports);
  }

  /** The reports of a write, a row for each file; they are given once. */
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
    String own;
    String name;
    String working = "";
    if (places == null) {
      int dot = path.indexOf('.', path.lastIndexOf('/'));
      own = path.substring(0, dot) + '-' + context.getTaskAttemptID().getId() + '-' + made
          + path.substring(dot);
      name = own.substring(own.lastIndexOf('/') + 1);
    } else {
      // Names of one partition are in the order of its rows.
      name = places.below(path, String.format("%05d-%d-%04d", new Object[] {
          Integer.valueOf(context.getTaskAttemptID().getTaskID().getId()),
          Integer.valueOf(context.getTaskAttemptID().getId()), Integer.valueOf(made)}));
      own = places.root(path) + '/' + name;
      working = places.working(path);
    }
    made++;
    if (begun == null) {
      begun = new AttemptFiles(context.getConfiguration());
    }
    begun.add(own);
    return new ReportedWriter(factory.newInstance(own, rows, context), own, name, working,
        context.getConfiguration(), reports);
  }
}
