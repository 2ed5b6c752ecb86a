package shelduck.bridge.write;

import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnWriteStore;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructType;

/**
 * Columns of numbers and booleans, each of whose values goes straight into its column. For Spark's own
 * writer a value is a field of a record, which takes several calls; the columns get the same ones.
 */
public final class PlainColumns {
  private static final int OTHER = 0;
  private static final int INT = 1;
  private static final int LONG = 2;
  private static final int FLOAT = 3;
  private static final int DOUBLE = 4;
  private static final int BOOLEAN = 5;
  private static final int BYTE = 6;
  private static final int SHORT = 7;

  private final ColumnWriteStore store;
  private final ColumnWriter[] columns;
  private final int[] kinds;
  private final int[] levels;

  /** The first columns of rows are those of {@code schema}, which is {@code made} in Parquet. */
  public PlainColumns(StructType schema, MessageType made, ColumnWriteStore store) {
    this.store = store;
    columns = new ColumnWriter[schema.length()];
    kinds = new int[columns.length];
    levels = new int[columns.length];
    for (int i = 0; i < columns.length; i++) {
      ColumnDescriptor column = (ColumnDescriptor) made.getColumns().get(i);
      columns[i] = store.getColumnWriter(column);
      kinds[i] = kind(schema.fields()[i].dataType());
      levels[i] = column.getMaxDefinitionLevel();
    }
  }

  /** Whether all columns are such ones. */
  public static boolean are(StructType schema) {
    for (int i = 0; i < schema.length(); i++) {
      if (kind(schema.fields()[i].dataType()) == OTHER) {
        return false;
      }
    }
    return true;
  }

  private static int kind(DataType type) {
    return type instanceof IntegerType ? INT
        : type instanceof LongType ? LONG
        : type instanceof FloatType ? FLOAT
        : type instanceof DoubleType ? DOUBLE
        : type instanceof BooleanType ? BOOLEAN
        : type instanceof ByteType ? BYTE
        : type instanceof ShortType ? SHORT
        : OTHER;
  }

  public void write(InternalRow row) {
    for (int i = 0; i < columns.length; i++) {
      ColumnWriter column = columns[i];
      int level = levels[i];
      if (row.isNullAt(i)) {
        if (level == 0) {
          throw new IllegalStateException("a value is NULL in a column that is NOT NULL");
        }
        column.writeNull(0, 0);
        continue;
      }
      switch (kinds[i]) {
        case INT:
          column.write(row.getInt(i), 0, level);
          break;
        case LONG:
          column.write(row.getLong(i), 0, level);
          break;
        case FLOAT:
          column.write(row.getFloat(i), 0, level);
          break;
        case DOUBLE:
          column.write(row.getDouble(i), 0, level);
          break;
        case BOOLEAN:
          column.write(row.getBoolean(i), 0, level);
          break;
        case BYTE:
          column.write((int) row.getByte(i), 0, level);
          break;
        default:
          column.write((int) row.getShort(i), 0, level);
      }
    }
    store.endRecord();
  }
}
