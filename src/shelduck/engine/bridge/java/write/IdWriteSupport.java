package shelduck.bridge.write;

import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.runtime.AbstractFunction0;

/**
 * Spark's own Parquet writer, with a schema whose fields have the ids of {@link FieldIds}. It refuses
 * values that {@link HeldValues} does not know.
 */
public class IdWriteSupport extends WriteSupport {
  private final ParquetWriteSupport spark;
  private HeldValues held;

  /**
   * Spark sets the calendar of dates when its writer is created, from the session's configuration.
   */
  public IdWriteSupport() {
    SQLConf calendar = new SQLConf();
    calendar.setConfString("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED");
    spark = (ParquetWriteSupport) SQLConf.withExistingConf(calendar, new AbstractFunction0() {
      public Object apply() {
        return new ParquetWriteSupport();
      }
    });
  }

  public WriteSupport.WriteContext init(Configuration conf) {
    WriteSupport.WriteContext context = spark.init(conf);
    String schema = conf.getRaw(ParquetWriteSupport.SPARK_ROW_SCHEMA());
    held = HeldValues.of((StructType) DataType.fromJson(schema), conf);
    return new WriteSupport.WriteContext(
        FieldIds.of(conf).applied(context.getSchema()), context.getExtraMetaData());
  }

  public void prepareForWrite(RecordConsumer consumer) {
    spark.prepareForWrite(consumer);
  }

  public void write(Object row) {
    if (held != null) {
      held.check((InternalRow) row);
    }
    spark.write((InternalRow) row);
  }
}
