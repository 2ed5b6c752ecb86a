package shelduck.bridge.scan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.write.ChangeWriter;
import shelduck.bridge.write.CopyingWriter;
import shelduck.bridge.write.FieldIds;
import shelduck.bridge.write.HeldValues;
import shelduck.bridge.write.ReportedWriters;
import shelduck.bridge.write.SealedFiles;

/**
 * Spark's Parquet format, with four additions. A scan does not trust the catalog's sizes and row
 * counts. It skips no row group by filters that {@link SafeFilters} removes. If the constants say
 * so, it drops the deleted positions of each file while it reads. And a write gives every field the
 * id in option {@code shelduck.field.ids}; with option {@code shelduck.changes}, it writes the rows of
 * a {@link ChangeWriter}, and with {@code shelduck.copied} those of a {@link CopyingWriter}. With option {@code shelduck.reports}, tasks report their files, and
 * with {@code shelduck.partition.names} they write those of partitions where they stay.
 */
public class LakeParquet extends ParquetFileFormat {
  /** The first of the three constants that {@link DeletedPositions} reads. */
  public static final String DELETES = "__shelduck_delete_file";
  /** An option of a scan: read only the deleted rows. */
  public static final String WANTS_DELETED = "shelduck.wants.deleted";
  /** An option of a scan: the name of the table in messages. */
  public static final String TABLE = "shelduck.table";
  /** An option of a scan: the names of the columns of files, as rows of text. */
  public static final String COLUMNS = "shelduck.columns";
  private static final String ROW_INDEX = TextBatches.CountedVector.NAME;

  private static boolean has(StructType schema, String name) {
    return schema.getFieldIndex(name).isDefined();
  }

  private static StructType withRowIndex(StructType schema) {
    return has(schema, ROW_INDEX) ? schema : schema.add(ROW_INDEX, DataTypes.LongType, true);
  }

  public String toString() {
    return "LakeParquet";
  }

  /**
   * The row index is one more field, and the number of fields decides whether Spark reads batches.
   */
  public boolean supportBatch(SparkSession session, StructType schema) {
    return super.supportBatch(session, has(schema, DELETES) ? withRowIndex(schema) : schema);
  }

  /**
   * The classes of vectors that generated code casts to. If files may have deletes, it is {@link
   * KeptVector} for all columns, or none where generated code could not find that class.
   */
  public Option vectorTypes(StructType required, StructType partition, SQLConf conf) {
    if (!has(partition, DELETES)) {
      return TextBatches.types(super.vectorTypes(required, partition, conf), required);
    }
    String kept = KeptVector.class.getName();
    try {
      Class.forName(kept, false, Thread.currentThread().getContextClassLoader());
    } catch (ClassNotFoundException error) {
      return Option.empty();
    }
    int count = required.length() + partition.length();
    return Option.apply(ScalaSeq.of(Collections.nCopies(count, kept)));
  }

  /**
   * The configuration of one reader. Hadoop copies it once more for each file, but not a JobConf; a
   * reader with filters writes them into that copy, which files must not share.
   */
  private static Configuration copied(Configuration conf, Seq filters) {
    return filters.isEmpty() ? new JobConf(conf) : new Configuration(conf);
  }

  public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data,
      StructType partition, StructType required, Seq pushed, Map options, Configuration conf) {
    boolean mayHaveDeletes = has(partition, DELETES);
    boolean isPositionAsked = has(required, ROW_INDEX);
    Seq filters = SafeFilters.of(pushed, options);
    if (mayHaveDeletes || isPositionAsked) {
      filters = SafeFilters.selective(filters);
    }
    boolean counts = filters.isEmpty() && comesInBatches(options) && OpenedFile.isShown();
    int counted = counts && isPositionAsked ? required.fieldIndex(ROW_INDEX) : -1;
    ReadWhole untouched = reader(session, data, partition, required, counted, filters, options, conf);
    if (!mayHaveDeletes) {
      return untouched;
    }
    StructType wanted = withRowIndex(required);
    ReadWhole withPosition = counts || isPositionAsked ? untouched
        : reader(session, data, partition, wanted, -1, filters, options, conf);
    ReadWhole some = !options.contains(WANTS_DELETED) ? null : !counts ? withPosition
        : reader(session, data, partition, wanted, -1, filters, options, conf);
    return new ReadKept(untouched, withPosition, counts, !isPositionAsked,
        types(wanted, partition), wanted.fieldIndex(ROW_INDEX), partition.fieldIndex(DELETES),
        shared(session, conf), some, table(options));
  }

  /** Spark's reader, whose rows are those of whole files; {@code counted} as in {@link ReadWhole}. */
  private ReadWhole reader(SparkSession session, StructType data, StructType partition,
      StructType required, int counted, Seq filters, Map options, Configuration conf) {
    StructType read = required;
    if (counted >= 0) {
      ArrayList fields = new ArrayList(Arrays.asList(required.fields()));
      fields.remove(counted);
      read = new StructType((StructField[]) fields.toArray(new StructField[fields.size()]));
    }
    Option known = options.get(COLUMNS);
    // Spark writes the read schema into the configuration, so each reader needs its own copy.
    Configuration own = copied(conf, filters);
    Function1 plain = super.buildReaderWithPartitionValues(session, data, partition, read, filters,
        options, options.contains(SealedFiles.OPTION) ? SealedFiles.known(own) : own);
    return new ReadWhole(plain, filters.isEmpty(), counted, table(options),
        known.isEmpty() ? "" : (String) known.get());
  }

  /** A configuration for the tasks of a scan. */
  static Broadcast shared(SparkSession session, Configuration conf) {
    return JavaSparkContext.fromSparkContext(session.sparkContext())
        .broadcast(new SerializableConfiguration(new Configuration(conf)));
  }

  /** The name of the table in messages. */
  static String table(Map options) {
    Option named = options.get(TABLE);
    return named.isEmpty() ? "the lake" : (String) named.get();
  }

  private static boolean comesInBatches(Map options) {
    Option told = options.get(FileFormat$.MODULE$.OPTION_RETURNING_BATCH());
    return !told.isEmpty() && ((String) told.get()).equals("true");
  }

  /** The types of the columns that are read, then those of the constants. */
  static DataType[] types(StructType wanted, StructType partition) {
    DataType[] types = new DataType[wanted.length() + partition.length()];
    for (int i = 0; i < types.length; i++) {
      int constant = i - wanted.length();
      types[i] = (constant < 0 ? wanted.fields()[i] : partition.fields()[constant]).dataType();
    }
    return types;
  }

  /** Settings that other readers of a lake rely on; they apply to this job, not to the session. */
  public OutputWriterFactory prepareWrite(
      SparkSession session, Job job, Map options, StructType schema) {
    boolean changes = options.contains(ChangeWriter.OPTION);
    Option copied = options.get(CopyingWriter.OPTION);
    StructType written = changes ? ChangeWriter.written(schema)
        : copied.isEmpty() ? schema : CopyingWriter.written(schema);
    OutputWriterFactory factory = super.prepareWrite(session, job, options, written);
    Option ids = options.get(FieldIds.OPTION);
    if (ids.isEmpty()) {
      throw new IllegalArgumentException("a write by LakeParquet needs the option " + FieldIds.OPTION);
    }
    Configuration conf = job.getConfiguration();
    conf.set(FieldIds.OPTION, (String) ids.get());
    Option moved = options.get(HeldValues.MOVED);
    if (!moved.isEmpty()) {
      conf.set(HeldValues.MOVED, (String) moved.get());
    }
    if (conf.get("parquet.block.row.count.limit") == null && conf.get("parquet.block.size") == null) {
      // Spark reads a row group at once, also for LIMIT; groups of fewer rows make scans slower.
      conf.setInt("parquet.block.row.count.limit", 1 << 20);
    }
    // A bound that is cut would not be a value of the column.
    conf.setInt("parquet.statistics.truncate.length", Integer.MAX_VALUE);
    conf.set("parquet.write.support.class", HeldValues.IdWriteSupport.class.getName());
    conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
    conf.setBoolean("spark.sql.parquet.writeLegacyFormat", false);
    // One source of ids: a column read from another table may still have that table's id.
    conf.setBoolean("spark.sql.parquet.fieldId.write.enabled", false);
    conf.setBoolean("mapreduce.fileoutputcommitter.marksuccessfuljobs", false);
    String rows = ParquetWriteSupport.SPARK_ROW_SCHEMA();
    if (!conf.getRaw(rows).equals(conf.get(rows))) {
      throw new IllegalArgumentException(
          "a field name contains ${...}, which Spark would replace with a setting; rename it");
    }
    if (options.contains(SealedFiles.OPTION)) {
      SealedFiles.encrypt(conf);
    }
    FieldIds.of(conf).checked(new SparkToParquetSchemaConverter(conf).convert(written));
    if (!copied.isEmpty()) {
      conf.set(CopyingWriter.OPTION, (String) copied.get());
      factory = new CopyingWriter.Factory(factory, written);
    }
    Option reports = options.get(ReportedWriters.OPTION);
    if (!reports.isEmpty()) {
      conf.setClassLoader(ReportedWriters.LakeCommitter.class.getClassLoader());
      conf.set("spark.sql.sources.outputCommitterClass", ReportedWriters.LakeCommitter.class.getName());
      Option names = options.get(ReportedWriters.FinalPlaces.OPTION);
      ReportedWriters.FinalPlaces places = names.isEmpty()
          ? null : new ReportedWriters.FinalPlaces((String) names.get());
      factory =
          new ReportedWriters(factory, session.sparkContext(), (String) reports.get(), places);
    }
    return changes ? new ChangeWriter.Factory(factory, written) : factory;
  }
}
