package shelduck.bridge.scan;

import java.math.BigDecimal;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Constants of files and values of MIN and MAX: as texts, and as Catalyst has and compares them. */
public final class MetadataValue {
  private MetadataValue() {}

  /** Bounds of other types, such as texts, may be cut. */
  public static boolean isKnown(DataType type) {
    return isLong(type) || isInt(type) || type instanceof ShortType || type instanceof ByteType
        || type instanceof DecimalType || type instanceof DoubleType || type instanceof FloatType
        || type instanceof BooleanType;
  }

  private static boolean isLong(DataType type) {
    return type instanceof LongType || type instanceof TimestampType
        || type instanceof TimestampNTZType;
  }

  private static boolean isInt(DataType type) {
    return type instanceof IntegerType || type instanceof DateType;
  }

  /** The value of a text, such as {@code 17}, {@code -0.5} or {@code true}. */
  public static Object of(String text, DataType type) {
    if (type instanceof BooleanType) {
      return Boolean.valueOf(text);
    }
    BigDecimal number = new BigDecimal(text);
    if (type instanceof DecimalType) {
      DecimalType kind = (DecimalType) type;
      return Decimal.apply(number, kind.precision(), kind.scale());
    }
    if (type instanceof DoubleType) {
      return Double.valueOf(number.doubleValue());
    }
    if (type instanceof FloatType) {
      return Float.valueOf(number.floatValue());
    }
    long whole = number.longValueExact();
    if (isLong(type)) {
      return Long.valueOf(whole);
    }
    if (isInt(type)) {
      return Integer.valueOf(Math.toIntExact(whole));
    }
    return type instanceof ShortType
        ? (Object) Short.valueOf((short) whole) : (Object) Byte.valueOf((byte) whole);
  }

  /** Whether MIN or MAX, the {@code word}, is the first of two values; NaN is the greatest. */
  public static boolean isBetter(String word, Object one, Object other) {
    int order = ((Comparable) one).compareTo(other);
    return word.equals("MIN") ? order < 0 : order > 0;
  }

  /** Whether the value is a zero of floats, of which the rows may have another one. */
  public static boolean hasTwoForms(Object value) {
    return (value instanceof Double && ((Double) value).doubleValue() == 0)
        || (value instanceof Float && ((Float) value).floatValue() == 0);
  }
}
