package shelduck.bridge.write;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

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
    if (value instanceof Long) {
      return Integer.valueOf(hash(((Long) value).longValue()));
    }
    if (value instanceof Double) {
      return Integer.valueOf(hash(Double.doubleToLongBits(((Double) value).doubleValue())));
    }
    return Integer.valueOf(hash((byte[]) value));
  }

  private static int hash(long value) {
    int found = mixed(0, (int) value);
    return finished(mixed(found, (int) (value >>> 32)), 8);
  }

  private static int hash(byte[] bytes) {
    int found = 0;
    int whole = bytes.length & ~3;
    for (int i = 0; i < whole; i += 4) {
      found = mixed(found, (bytes[i] & 255) | (bytes[i + 1] & 255) << 8
          | (bytes[i + 2] & 255) << 16 | bytes[i + 3] << 24);
    }
    int rest = 0;
    for (int i = bytes.length - 1; i >= whole; i--) {
      rest = rest << 8 | (bytes[i] & 255);
    }
    return finished(found ^ scrambled(rest), bytes.length);
  }

  private static int mixed(int found, int block) {
    return Integer.rotateLeft(found ^ scrambled(block), 13) * 5 + 0xe6546b64;
  }

  private static int scrambled(int block) {
    return Integer.rotateLeft(block * 0xcc9e2d51, 15) * 0x1b873593;
  }

  private static int finished(int found, int length) {
    int last = found ^ length;
    last = (last ^ last >>> 16) * 0x85ebca6b;
    last = (last ^ last >>> 13) * 0xc2b2ae35;
    return (last ^ last >>> 16) & 0x7fffffff;
  }
}
