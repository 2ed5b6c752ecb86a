package shelduck.bridge.scan;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import shelduck.bridge.plans.HiddenField;
import shelduck.bridge.plans.ScalaSeq;

/**
 * The batches of one file, whose texts are in vectors of {@link TextVector}. If they are to be
 * counted, they have the positions of their rows as one more column: Spark makes an object for each.
 */
public final class TextBatches {
  private final int counted;
  private final CountedVector positions = new CountedVector();
  private ColumnarBatch read;
  private ColumnarBatch shown;
  private TextVector[] texts;

  /** {@code counted} is where the column of positions goes, negative for none. */
  public TextBatches(int counted) {
    this.counted = counted;
  }

  /** The classes that generated code casts vectors to: Spark's own, but for texts any. */
  public static Option types(Option own, StructType required) {
    if (own.isEmpty()) {
      return own;
    }
    ArrayList types = new ArrayList(CollectionConverters.asJava((Seq) own.get()));
    for (int i = 0; i < required.length(); i++) {
      StructField field = required.fields()[i];
      if (field.dataType() instanceof StringType || field.name().equals(CountedVector.NAME)) {
        types.set(i, ColumnVector.class.getName());
      }
    }
    return Option.apply(ScalaSeq.of(types));
  }

  public boolean areCounted() {
    return counted >= 0;
  }

  /** The position of the first row of the next batch. */
  public void begin(long first) {
    positions.begin(first);
  }

  /** The same rows; valid until the next call, as Spark's own batch is. */
  public ColumnarBatch of(ColumnarBatch batch) {
    if (batch != read) {
      wrap(batch);
    }
    for (TextVector each : texts) {
      each.begin();
    }
    shown.setNumRows(batch.numRows());
    return shown;
  }

  private void wrap(ColumnarBatch batch) {
    ArrayList columns = new ArrayList();
    ArrayList found = new ArrayList();
    for (int c = 0; c < batch.numCols(); c++) {
      ColumnVector column = batch.column(c);
      if (column.dataType() instanceof StringType && column instanceof WritableColumnVector) {
        column = new TextVector((WritableColumnVector) column);
        found.add(column);
      }
      columns.add(column);
    }
    if (areCounted()) {
      columns.add(counted, positions);
    }
    texts = (TextVector[]) found.toArray(new TextVector[found.size()]);
    boolean isSame = texts.length == 0 && !areCounted();
    ColumnVector[] all = (ColumnVector[]) columns.toArray(new ColumnVector[columns.size()]);
    shown = isSame ? batch : new ColumnarBatch(all);
    read = batch;
  }

  /** The positions of the rows of a batch, which follow one another: they need no memory. */
  public static final class CountedVector extends KeptVector {
    /** The name that Spark gives to the column. */
    public static final String NAME = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME();
    private long first;

    public CountedVector() {
      super(new ConstantColumnVector(0, DataTypes.LongType), null, 0);
    }

    public void begin(long row) {
      first = row;
    }

    public long getLong(int i) {
      return first + i;
    }
  }

  /**
   * A vector of texts that Spark's Parquet reader fills. A text of a dictionary is made once for all
   * rows that have it, and knows its length then; Spark copies the bytes for each row.
   */
  public static class TextVector extends KeptVector {
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
        return HiddenField.of(owner, "dictionary");
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
}
