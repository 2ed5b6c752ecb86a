package shelduck.bridge.write;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.runtime.AbstractFunction0;
import shelduck.bridge.python.TextRows;

/**
 * The values of one type that other readers of a lake hold too. Which ones these are is written in
 * shelduck/model/tables/held.py, which also says what is wrong with another one.
 */
public final class HeldValues {
  /** An option of a write: the ids of columns whose values the files of the table already have. */
  public static final String MOVED = "shelduck.moved.ids";
  /** Stands before the id of a field and its value. */
  private static final String UNHELD = "shelduck unheld: ";
  private static final int LEAST_DATE = -Integer.MAX_VALUE;
  private static final long LEAST_MOMENT = -9223372022400000000L;
  private static final long NOT_ASCII = 0x8080808080808080L;
  private static final int MOST_SHOWN = 32;
  private static final int TEXT = 0;
  private static final int DATE = 1;
  private static final int MOMENT = 2;
  private static final int STRUCT = 3;
  private static final int LIST = 4;
  private static final int MAP = 5;

  private final int kind;
  private final Integer id;
  /** Those of a struct by the places of its fields; null where nothing is to be checked. */
  private final HeldValues[] parts;

  private HeldValues(int kind, Integer id, HeldValues[] parts) {
    this.kind = kind;
    this.id = id;
    this.parts = parts;
  }

  /** The checks of rows of a schema; null if every reader holds all of their values. */
  public static HeldValues of(StructType schema, Configuration conf) {
    FieldIds ids = FieldIds.of(conf);
    HashSet moved = new HashSet();
    for (String[] row : TextRows.rows(conf.getRaw(MOVED) == null ? "" : conf.getRaw(MOVED))) {
      moved.add(Integer.valueOf(row[0]));
    }
    return members(schema, new ArrayList(), ids, moved);
  }

  private static HeldValues members(StructType type, List path, FieldIds ids, HashSet moved) {
    StructField[] fields = type.fields();
    HeldValues[] parts = new HeldValues[fields.length];
    boolean isNeeded = false;
    for (int i = 0; i < fields.length; i++) {
      List below = FieldIds.below(path, fields[i].name());
      parts[i] =
          moved.contains(ids.id(below)) ? null : part(fields[i].dataType(), below, ids, moved);
      isNeeded |= parts[i] != null;
    }
    return isNeeded ? new HeldValues(STRUCT, null, parts) : null;
  }

  private static HeldValues part(DataType type, List path, FieldIds ids, HashSet moved) {
    if (type instanceof StringType) {
      return new HeldValues(TEXT, ids.id(path), null);
    }
    if (type instanceof DateType) {
      return new HeldValues(DATE, ids.id(path), null);
    }
    if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      return new HeldValues(MOMENT, ids.id(path), null);
    }
    if (type instanceof StructType) {
      return members((StructType) type, path, ids, moved);
    }
    if (type instanceof ArrayType) {
      DataType element = ((ArrayType) type).elementType();
      List items = FieldIds.below(path, "list");
      HeldValues part = part(element, FieldIds.below(items, "element"), ids, moved);
      return part == null ? null : new HeldValues(LIST, null, new HeldValues[] {part});
    }
    if (type instanceof MapType) {
      List pairs = FieldIds.below(path, "key_value");
      HeldValues key = part(((MapType) type).keyType(), FieldIds.below(pairs, "key"), ids, moved);
      HeldValues value = part(((MapType) type).valueType(), FieldIds.below(pairs, "value"), ids, moved);
      return key == null && value == null
          ? null : new HeldValues(MAP, null, new HeldValues[] {key, value});
    }
    return null;
  }

  /** Fails for the first value of a row that other readers do not hold. */
  public void check(SpecializedGetters row) {
    for (int i = 0; i < parts.length; i++) {
      if (parts[i] != null && !row.isNullAt(i)) {
        parts[i].check(row, i);
      }
    }
  }

  private void check(SpecializedGetters from, int at) {
    if (kind == TEXT) {
      UTF8String text = from.getUTF8String(at);
      if (!isText(text)) {
        throw unheld(hexadecimal(text));
      }
    } else if (kind == DATE) {
      if (from.getInt(at) < LEAST_DATE) {
        throw unheld(String.valueOf(from.getInt(at)));
      }
    } else if (kind == MOMENT) {
      long micros = from.getLong(at);
      // The other number below is infinity in the past.
      if (micros < LEAST_MOMENT && micros != -Long.MAX_VALUE) {
        throw unheld(String.valueOf(micros));
      }
    } else if (kind == STRUCT) {
      check(from.getStruct(at, parts.length));
    } else if (kind == LIST) {
      checkItems(parts[0], from.getArray(at));
    } else {
      MapData pairs = from.getMap(at);
      checkItems(parts[0], pairs.keyArray());
      checkItems(parts[1], pairs.valueArray());
    }
  }

  private static void checkItems(HeldValues part, ArrayData items) {
    int count = part == null ? 0 : items.numElements();
    for (int i = 0; i < count; i++) {
      if (!items.isNullAt(i)) {
        part.check(items, i);
      }
    }
  }

  /** Whether bytes are UTF-8. Of ASCII it looks at eight at once, in a third of Spark's time. */
  private static boolean isText(UTF8String text) {
    Object base = text.getBaseObject();
    long at = text.getBaseOffset();
    long end = at + text.numBytes();
    while (at < end) {
      if (at + 8 <= end && (Platform.getLong(base, at) & NOT_ASCII) == 0) {
        at += 8;
        continue;
      }
      int first = Platform.getByte(base, at) & 0xFF;
      at++;
      if (first < 0x80) {
        continue;
      }
      int more = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
      if (more == 0 || at + more > end) {
        return false;
      }
      // No longer form than necessary, no half of a character, and nothing beyond U+10FFFF.
      int least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
      int most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
      int second = Platform.getByte(base, at) & 0xFF;
      if (second < least || second > most) {
        return false;
      }
      for (int i = 1; i < more; i++) {
        if ((Platform.getByte(base, at + i) & 0xC0) != 0x80) {
          return false;
        }
      }
      at += more;
    }
    return true;
  }

  private static String hexadecimal(UTF8String text) {
    byte[] bytes = text.getBytes();
    StringBuilder shown = new StringBuilder("X'");
    for (int i = 0; i < bytes.length && i < MOST_SHOWN; i++) {
      shown.append(String.format("%02X", bytes[i]));
    }
    return shown.append(bytes.length > MOST_SHOWN ? "...'" : "'").toString();
  }

  private IllegalArgumentException unheld(String value) {
    return new IllegalArgumentException(UNHELD + id + " " + value);
  }

  /**
   * Spark's own Parquet writer, with a schema whose fields have the ids of {@link FieldIds}. It refuses
   * values that {@link HeldValues} does not know.
   */
  public static class IdWriteSupport extends WriteSupport {
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
}
