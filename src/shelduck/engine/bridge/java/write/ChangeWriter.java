package shelduck.bridge.write;

import java.util.ArrayList;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import shelduck.bridge.plans.ScalaSeq;

/**
 * Writes changed rows, and where their old versions are, in one pass. Its rows have the columns of
 * the table and the row id, and behind them an action, a data file and a position. An updated row
 * with a row id goes to the file itself. An updated row without one and an inserted row go to a
 * file beside it, which has no row ids. The origins of updated and deleted rows go to a third file.
 */
public class ChangeWriter extends OutputWriter {
  public static final String OPTION = "shelduck.changes";
  private static final long UPDATE = 1L;
  private static final long INSERT = 2L;
  private static final long DELETE = 3L;
  private static final int MARKS = 3;
  private static final String PARQUET = ".parquet";
  /** What ends the name of a file before {@code .parquet}; {@code origins.py} looks for it. */
  public static final String ORIGINS = ".origins";
  public static final String NEW = ".new";

  private final OutputWriterFactory factory;
  private final StructType schema;
  private final String path;
  private final TaskAttemptContext context;
  private final int rowId;
  private final ProjectingInternalRow whole;
  private final ProjectingInternalRow bare;
  private final OutputWriter origins;
  private OutputWriter known;
  private OutputWriter fresh;

  /** {@code schema} are the columns of the table and the row id. */
  public ChangeWriter(OutputWriterFactory factory, StructType schema, String path,
      TaskAttemptContext context) {
    this.factory = factory;
    this.schema = schema;
    this.path = path;
    this.context = context;
    this.rowId = schema.length() - 1;
    this.whole = projected(schema);
    this.bare = projected(first(schema, rowId));
    StructType places = new StructType().add("action", DataTypes.LongType)
        .add("file", DataTypes.LongType).add("pos", DataTypes.LongType)
        .add("row", DataTypes.LongType);
    // Made without a row too: the driver sees that Spark wrote where it looks.
    this.origins = beside(ORIGINS, places);
  }

  /** The columns that a file may have: those of rows to write without their marks. */
  public static StructType written(StructType rows) {
    return first(rows, rows.length() - MARKS);
  }

  public void write(InternalRow row) {
    long action = row.getLong(rowId + 1);
    if (action == INSERT || (action == UPDATE && lacksId(row))) {
      if (fresh == null) {
        fresh = beside(NEW, bare.schema());
      }
      bare.project(row);
      fresh.write(bare);
    } else if (action == UPDATE) {
      if (known == null) {
        known = factory.newInstance(path, schema, context);
      }
      whole.project(row);
      known.write(whole);
    } else if (action != DELETE) {
      throw new IllegalStateException("no writer knows the action " + action);
    }
    if (action != INSERT) {
      origins.write(new GenericInternalRow(new Object[] {Long.valueOf(action),
          number(row, rowId + 2), number(row, rowId + 3), number(row, rowId)}));
    }
  }

  public void close() {
    origins.close();
    if (known != null) {
      known.close();
    }
    if (fresh != null) {
      fresh.close();
    }
  }

  public String path() {
    return path;
  }

  /** A writer has its schema from the configuration, so this one gets a copy of it. */
  private OutputWriter beside(String suffix, StructType columns) {
    Configuration conf = new Configuration(context.getConfiguration());
    ParquetWriteSupport.setSchema(columns, conf);
    String name = path.substring(0, path.length() - PARQUET.length()) + suffix + PARQUET;
    return factory.newInstance(
        name, columns, new TaskAttemptContextImpl(conf, context.getTaskAttemptID()));
  }

  /** Rows of an open transaction have no row id yet, or a negative number of its own. */
  private boolean lacksId(InternalRow row) {
    return row.isNullAt(rowId) || row.getLong(rowId) < 0;
  }

  private static Long number(InternalRow row, int at) {
    return row.isNullAt(at) ? null : Long.valueOf(row.getLong(at));
  }

  static ProjectingInternalRow projected(StructType columns) {
    ArrayList places = new ArrayList();
    for (int i = 0; i < columns.length(); i++) {
      places.add(Integer.valueOf(i));
    }
    return ProjectingInternalRow.apply(columns, ScalaSeq.of(places));
  }

  static StructType first(StructType columns, int count) {
    StructField[] fields = (StructField[]) Arrays.copyOf(columns.fields(), count);
    return new StructType(fields);
  }

  /** Makes a {@link ChangeWriter} for each file that Spark begins. */
  public static class Factory extends OutputWriterFactory {
    private final OutputWriterFactory factory;
    protected final StructType schema;

    /** {@code schema} are the columns of the table and the row id. */
    public Factory(OutputWriterFactory factory, StructType schema) {
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
}
