package shelduck.bridge.write;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.lang3.reflect.MethodUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskFailureListener;
import shelduck.bridge.plans.HiddenField;
import shelduck.bridge.python.TextRows;

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
    return found == null || found.isZero() ? "" : String.join("\n", found.value()) + '\n';
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
    byte[] key = SealedFiles.fresh(context.getConfiguration());
    SealedFiles.hold(key);
    try {
      String place = key == null ? own : SealedFiles.sealed(new Path(own)).toString();
      return new ReportedWriter(factory.newInstance(place, rows, context), own, name, working, key,
          context.getConfiguration(), reports);
    } finally {
      SealedFiles.hold(null);
    }
  }

  /**
   * Writes a file and reports what it is, so that nobody has to look at it. Spark keeps the reports of
   * the task that succeeded, and of no other attempt.
   */
  private static final class ReportedWriter extends OutputWriter {
    private final OutputWriter writer;
    private final String path;
    private final String name;
    private final String working;
    private final byte[] key;
    private final Configuration conf;
    private final CollectionAccumulator reports;
    private boolean closed;

    /**
     * {@code name} is what the driver calls the file, {@code working} the directories in which Spark
     * would have put it below that of the write.
     */
    ReportedWriter(OutputWriter writer, String path, String name, String working, byte[] key,
        Configuration conf, CollectionAccumulator reports) {
      this.writer = writer;
      this.path = path;
      this.name = name;
      this.working = working;
      this.key = key;
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
      reports.add(TextRows.encoded(name, working, again ? "again" : "", Long.toString(size),
          footer(), key == null ? "" : Base64.getEncoder().encodeToString(key)));
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
        Object file = HiddenField.value(
            writer, "recordWriter", "internalWriter", "parquetFileWriter");
        return ((ParquetFileWriter) file).getPos();
      } catch (ReflectiveOperationException other) {
        Path place = new Path(path);
        return place.getFileSystem(conf).getFileStatus(place).getLen();
      }
    }

    /** Empty if Spark's writer does not show it: then the file is read. */
    private String footer() {
      try {
        Object found = writer instanceof CopyingWriter ? ((CopyingWriter) writer).footer()
            : MethodUtils.invokeMethod(
                HiddenField.value(writer, "recordWriter", "internalWriter"), true, "getFooter");
        int most = conf.getInt(ParquetOutputFormat.STATISTICS_TRUNCATE_LENGTH,
            ParquetProperties.DEFAULT_STATISTICS_TRUNCATE_LENGTH);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Util.writeFileMetaData(
            new ParquetMetadataConverter(most).toParquetMetadata(1, (ParquetMetadata) found), bytes);
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
      } catch (Exception other) {
        return "";
      }
    }
  }

  /**
   * Leaves files where tasks write them. Nobody sees them before the catalog names them, and
   * {@link ReportedWriter} reports those of tasks that succeeded, so nothing has to be moved: on an
   * object store, each move is a copy and several requests.
   */
  public static class LakeCommitter extends OutputCommitter {
    public void setupJob(JobContext context) {}

    public void setupTask(TaskAttemptContext context) {}

    /**
     * The driver is asked whether an attempt may succeed: if another one did, or the job has ended, the
     * attempt fails and {@link AttemptFiles} deletes what it wrote.
     */
    public boolean needsTaskCommit(TaskAttemptContext context) {
      return true;
    }

    public void commitTask(TaskAttemptContext context) {}

    public void abortTask(TaskAttemptContext context) {}
  }

  /**
   * The files that one attempt of a task began. If the attempt fails or is killed, it deletes them:
   * nobody else knows where they are. {@link ReportedWriters.LakeCommitter} lets only one attempt of a task succeed.
   */
  public static class AttemptFiles implements TaskFailureListener {
    private final ArrayList paths = new ArrayList();
    private final Path root;
    private final Configuration conf;

    public AttemptFiles(Configuration conf) {
      // All files are below the directory in which that of the write is.
      this.root = new Path(conf.get(FileOutputFormat.OUTDIR)).getParent();
      this.conf = conf;
      TaskContext.get().addTaskFailureListener(this);
    }

    public void add(String path) {
      paths.add(new Path(path));
    }

    public void onTaskFailure(TaskContext context, Throwable error) {
      // Unlike `delete`, it leaves no marker of an empty directory on S3.
      try {
        BulkDelete deletion = root.getFileSystem(conf).createBulkDelete(root);
        int page = deletion.pageSize();
        for (int i = 0; i < paths.size(); i += page) {
          deletion.bulkDelete(new ArrayList(paths.subList(i, Math.min(i + page, paths.size()))));
        }
      } catch (IOException unreachable) {
        // Each further page would be tried in vain for a minute. The search for orphans finds them.
        return;
      }
    }
  }

  /**
   * Where the files of a write into partitions stay: in the directories that DuckDB would choose, below
   * that of the table, under names that begin with the name of the write. Spark would put them below
   * the directory of the write, in directories whose names {@code partition_keys.py} makes. Python
   * checks each place, so a place that is not DuckDB's costs a copy.
   */
  public static class FinalPlaces implements Serializable {
    /** An option of a write: a row of the names of the keys, encoded as in a path; "" for none. */
    public static final String OPTION = "shelduck.partition.names";
    /** These two are also in {@code partition_keys.py}. */
    private static final String MARK = "\u0001";
    private static final String PERCENT = "~";
    private static final String PARQUET = ".parquet";

    private final String[] names;

    public FinalPlaces(String option) {
      this.names = (String[]) TextRows.rows(option).get(0);
    }

    /** The directories between that of the write and a file, as Spark makes them. */
    public String working(String path) {
      int end = path.lastIndexOf('/');
      return path.substring(above(path, names.length) + 1, end);
    }

    /** The directory of the table. */
    public String root(String path) {
      return path.substring(0, above(path, names.length + 1));
    }

    /** The last place of a file below the directory of the table. {@code own} no other file has. */
    public String below(String path, String own) {
      int end = above(path, names.length);
      String write = path.substring(above(path, names.length + 1) + 1, end);
      String[] parts = working(path).split("/");
      StringBuilder place = new StringBuilder();
      for (int i = 0; i < names.length; i++) {
        if (names[i].length() > 0) {
          place.append(names[i]).append('=').append(text(parts[i])).append('/');
        }
      }
      return place.append(write).append('-').append(own).append(kind(path)).append(PARQUET).toString();
    }

    /** What a {@link ChangeWriter} puts at the end of a name. */
    private static String kind(String path) {
      return path.endsWith(ChangeWriter.ORIGINS + PARQUET) ? ChangeWriter.ORIGINS
          : path.endsWith(ChangeWriter.NEW + PARQUET) ? ChangeWriter.NEW : "";
    }

    /** The index of the slash above so many directories. */
    private static int above(String path, int directories) {
      int at = path.lastIndexOf('/');
      for (int i = 0; i < directories; i++) {
        at = path.lastIndexOf('/', at - 1);
      }
      return at;
    }

    private static String text(String directory) {
      String text =
          ExternalCatalogUtils.unescapePathName(directory.substring(directory.indexOf('=') + 1));
      String value = text.startsWith(MARK) ? URLDecoder.decode(
          text.substring(1).replace(PERCENT, "%"), StandardCharsets.UTF_8) : text;
      // Java encodes texts of forms, in which these characters have other forms.
      return URLEncoder.encode(value, StandardCharsets.UTF_8)
          .replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }
  }
}
