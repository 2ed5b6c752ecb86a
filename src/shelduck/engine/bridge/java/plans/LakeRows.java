package shelduck.bridge.plans;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.AbstractSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Rows of a lake that a plan itself holds: what Spark filters and projects of them while it
 * optimizes is of this class, too. So a rule can tell them from other rows of a session.
 */
public class LakeRows extends AbstractSeq {
  private final Object[] rows;

  public LakeRows(List rows) {
    this.rows = rows.toArray();
  }

  /** A relation whose rows are those of a lake. */
  public static LocalRelation relation(Seq output, List rows) {
    return new LocalRelation(output, new LakeRows(rows), false, scala.Option.empty());
  }

  /** The same relation, but as rows of a lake; its columns keep their ids. */
  public static LocalRelation of(LocalRelation plan) {
    return relation(plan.output(), CollectionConverters.asJava(plan.data()));
  }

  public Object apply(int at) {
    return rows[at];
  }

  /** For whoever calls it as a function. */
  public Object apply(Object at) {
    return rows[((Integer) at).intValue()];
  }

  public int length() {
    return rows.length;
  }

  public Iterator iterator() {
    return CollectionConverters.asScala(java.util.Arrays.asList(rows).iterator());
  }

  public boolean isDefinedAt(Object at) {
    int index = ((Integer) at).intValue();
    return index >= 0 && index < rows.length;
  }

  public Object map(Function1 change) {
    ArrayList found = new ArrayList(rows.length);
    for (Object each : rows) {
      found.add(change.apply(each));
    }
    return new LakeRows(found);
  }

  public Object filter(Function1 holds) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < rows.length; i++) {
      if (((Boolean) holds.apply(rows[i])).booleanValue()) {
        found.add(rows[i]);
      }
    }
    return new LakeRows(found);
  }

  public Object take(int most) {
    int end = Math.max(0, Math.min(most, rows.length));
    return new LakeRows(java.util.Arrays.asList(rows).subList(0, end));
  }
}
