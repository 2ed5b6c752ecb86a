package shelduck.bridge.scan;

import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataTypes;

/** The positions of the rows of a batch, which follow one another: they need no memory. */
public final class CountedVector extends KeptVector {
  /** The name that Spark gives to the column. */
  public static final String NAME = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME();
  private long first;

  public CountedVector() {
    super(new ConstantColumnVector(0, DataTypes.LongType), null, 0);
  }

  public void begin(long row) {
    first = row;
  }

  public int numNulls() {
    return 0;
  }

  public long getLong(int i) {
    return first + i;
  }
}
