package shelduck.bridge.plans;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.types.DataType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.AbstractSeq;
import scala.collection.immutable.ArraySeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Rows of a lake that a plan itself holds: what Spark filters and projects of them while it
 * optimizes is of this class, too. So a rule can tell them from other rows of a session.
 */
public class LakeRows extends AbstractSeq {
  private final Seq rows;

  public LakeRows(List rows) {
    this(ArraySeq.unsafeWrapArray(rows.toArray()));
  }

  private LakeRows(Seq rows) {
    this.rows = rows;
  }

  /** A relation whose rows are those of a lake. */
  public static LocalRelation relation(Seq output, List rows) {
    return new LocalRelation(output, new LakeRows(rows), false, scala.Option.empty());
  }

  /** The same relation, but as rows of a lake; its columns keep their ids. */
  public static LocalRelation of(LocalRelation plan) {
    return relation(plan.output(), CollectionConverters.asJava(plan.data()));
  }

  /** The values of a column that are not NULL. */
  public static List<Object> values(LocalRelation plan, int column) {
    DataType type = ((Attribute) plan.output().apply(column)).dataType();
    ArrayList<Object> found = new ArrayList<Object>();
    for (InternalRow each : ScalaSeq.list(plan.data())) {
      if (!each.isNullAt(column)) {
        found.add(each.get(column, type));
      }
    }
    return found;
  }

  public Object apply(int at) {
    return rows.apply(at);
  }

  /** For whoever calls it as a function. */
  public Object apply(Object at) {
    return rows.apply(((Integer) at).intValue());
  }

  public int length() {
    return rows.length();
  }

  public Iterator iterator() {
    return rows.iterator();
  }

  public boolean isDefinedAt(Object at) {
    return rows.isDefinedAt(((Integer) at).intValue());
  }

  public Object map(Function1 change) {
    return new LakeRows((Seq) rows.map(change));
  }

  public Object filter(Function1 holds) {
    return new LakeRows((Seq) rows.filter(holds));
  }

  public Object take(int most) {
    return new LakeRows((Seq) rows.take(most));
  }
}
