package shelduck.bridge.scan;

import java.util.Arrays;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The remaining rows of a vector: row i is its row {@code rows[i]}, or row i if {@code rows} is null.
 * Owns no memory.
 */
public class KeptVector extends ColumnVector {
  private final ColumnVector all;
  private final int[] rows;
  private final int count;
  private KeptVector[] children;
  private boolean hasNull;

  public KeptVector(ColumnVector all, int[] rows, int count) {
    super(all.dataType());
    this.all = all;
    this.rows = rows;
    this.count = count;
    look();
  }

  /** The vector below has other values now. Most have no NULL, and then nobody looks for one. */
  protected final void look() {
    hasNull = all.hasNull();
  }

  private int at(int i) {
    return rows == null ? i : rows[i];
  }

  public void close() {}

  public boolean hasNull() {
    return hasNull;
  }

  public int numNulls() {
    int nulls = 0;
    for (int i = 0; hasNull && i < count; i++) {
      if (all.isNullAt(at(i))) {
        nulls++;
      }
    }
    return nulls;
  }

  public boolean isNullAt(int i) {
    return hasNull && all.isNullAt(at(i));
  }

  public boolean getBoolean(int i) {
    return all.getBoolean(at(i));
  }

  public byte getByte(int i) {
    return all.getByte(at(i));
  }

  public short getShort(int i) {
    return all.getShort(at(i));
  }

  public int getInt(int i) {
    return all.getInt(at(i));
  }

  public long getLong(int i) {
    return all.getLong(at(i));
  }

  public float getFloat(int i) {
    return all.getFloat(at(i));
  }

  public double getDouble(int i) {
    return all.getDouble(at(i));
  }

  public ColumnarArray getArray(int i) {
    return all.getArray(at(i));
  }

  public ColumnarMap getMap(int i) {
    return all.getMap(at(i));
  }

  public Decimal getDecimal(int i, int precision, int scale) {
    return all.getDecimal(at(i), precision, scale);
  }

  public UTF8String getUTF8String(int i) {
    return all.getUTF8String(at(i));
  }

  public byte[] getBinary(int i) {
    return all.getBinary(at(i));
  }

  /** Fields of a struct are found by row; elements of arrays and maps are found by offset. */
  public ColumnVector getChild(int ordinal) {
    if (type instanceof ArrayType || type instanceof MapType) {
      return all.getChild(ordinal);
    }
    if (children == null || children.length <= ordinal) {
      children = children == null ? new KeptVector[ordinal + 4]
          : (KeptVector[]) Arrays.copyOf(children, ordinal + 4);
    }
    if (children[ordinal] == null) {
      children[ordinal] = new KeptVector(all.getChild(ordinal), rows, count);
    }
    return children[ordinal];
  }
}
