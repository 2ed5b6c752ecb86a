package shelduck.bridge.scan;

import java.lang.reflect.Field;
import java.util.Arrays;
import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A vector of texts that Spark's Parquet reader fills. A text of a dictionary is made once for all
 * rows that have it, and knows its length then; Spark copies the bytes for each row.
 */
public class TextVector extends KeptVector {
  private static final Field HELD = field(WritableColumnVector.class);
  private static final Field INSIDE = field(ParquetDictionary.class);
  private final WritableColumnVector all;
  private Object dictionary;
  private WritableColumnVector ids;
  private UTF8String[] texts = new UTF8String[256];

  public TextVector(WritableColumnVector all) {
    super(all, null, 0);
    this.all = all;
  }

  /** Null in a Spark that names it otherwise: then texts are made for each row. */
  private static Field field(Class owner) {
    try {
      Field found = owner.getDeclaredField("dictionary");
      found.setAccessible(true);
      return found;
    } catch (NoSuchFieldException other) {
      return null;
    }
  }

  /** The reader has put another batch into the vector. Batches of a row group share a dictionary. */
  public void begin() {
    look();
    ids = null;
    if (!all.hasDictionary() || HELD == null || INSIDE == null) {
      return;
    }
    try {
      Object held = HELD.get(all);
      if (!(held instanceof ParquetDictionary)) {
        return;
      }
      Object found = INSIDE.get(held);
      if (found != dictionary) {
        dictionary = found;
        Arrays.fill(texts, null);
      }
      ids = all.getDictionaryIds();
    } catch (IllegalAccessException other) {
      ids = null;
    }
  }

  public int numNulls() {
    return all.numNulls();
  }

  public UTF8String getUTF8String(int i) {
    if (ids == null || isNullAt(i)) {
      return all.getUTF8String(i);
    }
    int id = ids.getDictId(i);
    if (id >= texts.length) {
      texts = (UTF8String[]) Arrays.copyOf(texts, Math.max(id + 1, texts.length * 2));
    }
    UTF8String known = texts[id];
    if (known == null) {
      known = all.getUTF8String(i);
      texts[id] = known;
    }
    return known;
  }
}
