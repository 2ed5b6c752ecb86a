package shelduck.bridge.write;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/** DuckDB's hash of a partition key's bytes: Murmur3 (x86, 32 bits, seed 0), without its sign. */
public class BucketHash implements UDF1 {
  /** The hash of a column of longs, doubles or binary values. */
  public Column of(Column value) {
    return functions.udf((UDF1) this, DataTypes.IntegerType).apply(new Column[] {value});
  }

  /** A number is hashed as its eight bytes, a binary value as it is; null stays null. */
  public Object call(Object value) {
    if (value == null) {
      return null;
    }
    int found;
    if (value instanceof byte[]) {
      byte[] bytes = (byte[]) value;
      // The other method for bytes mixes those behind the last whole word in another way.
      found = Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0);
    } else {
      long number = value instanceof Long ? ((Long) value).longValue()
          : Double.doubleToLongBits(((Double) value).doubleValue());
      found = Murmur3_x86_32.hashLong(number, 0);
    }
    return Integer.valueOf(found & Integer.MAX_VALUE);
  }
}
