package shelduck.bridge.scan;

import java.util.ArrayList;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
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
}
