package shelduck.bridge;

import java.util.ArrayList;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The batches of one file, whose texts are in vectors of {@link TextVector}. */
public final class TextBatches {
  private ColumnarBatch read;
  private ColumnarBatch shown;
  private TextVector[] texts;

  /** The classes that generated code casts vectors to: Spark's own, but for texts any. */
  public static Option types(Option own, StructType required) {
    if (own.isEmpty()) {
      return own;
    }
    ArrayList types = new ArrayList(CollectionConverters.asJava((Seq) own.get()));
    for (int i = 0; i < required.length(); i++) {
      if (required.fields()[i].dataType() instanceof StringType) {
        types.set(i, ColumnVector.class.getName());
      }
    }
    return Option.apply(ScalaSeq.of(types));
  }

  /** The same rows; valid until the next call, as Spark's own batch is. */
  public ColumnarBatch of(ColumnarBatch batch) {
    if (batch != read) {
      wrap(batch);
    }
    for (int i = 0; i < texts.length; i++) {
      texts[i].begin();
    }
    shown.setNumRows(batch.numRows());
    return shown;
  }

  private void wrap(ColumnarBatch batch) {
    ColumnVector[] columns = new ColumnVector[batch.numCols()];
    ArrayList found = new ArrayList();
    for (int c = 0; c < columns.length; c++) {
      ColumnVector column = batch.column(c);
      if (column.dataType() instanceof StringType && column instanceof WritableColumnVector) {
        column = new TextVector((WritableColumnVector) column);
        found.add(column);
      }
      columns[c] = column;
    }
    texts = (TextVector[]) found.toArray(new TextVector[found.size()]);
    shown = texts.length == 0 ? batch : new ColumnarBatch(columns);
    read = batch;
  }
}
