package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.Option;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;

/**
 * Tells a {@link LakeWrite} what only Spark's plan knows, and leaves the planning to Spark: whether
 * rows go by name or by position, and which texts Spark casts for the PARTITION clause.
 */
public class LakeWriteStrategy extends SparkStrategy {
  public Seq apply(LogicalPlan plan) {
    try {
      tell(plan);
    } catch (LinkageError error) {
      // Another Spark than the one for which it was compiled. The write, untold, is refused.
    }
    return ScalaSeq.items();
  }

  private static void tell(LogicalPlan plan) {
    if (plan instanceof AppendData) {
      AppendData append = (AppendData) plan;
      tell(append.write(), append.isByName(), append.analyzedQuery(), append.query());
    } else if (plan instanceof OverwriteByExpression) {
      OverwriteByExpression overwrite = (OverwriteByExpression) plan;
      tell(overwrite.write(), overwrite.isByName(), overwrite.analyzedQuery(), overwrite.query());
    }
  }

  private static void tell(Option write, boolean byName, Option analyzed, LogicalPlan query) {
    if (write.isDefined() && write.get() instanceof LakeWrite) {
      Object plan = analyzed.isDefined() ? analyzed.get() : query;
      ((LakeWrite) write.get()).match(byName, fixed(plan));
    }
  }

  /** The names of columns to which Spark adds a value of the PARTITION clause, each before its text. */
  private static List fixed(Object plan) {
    ArrayList found = new ArrayList();
    Seq columns = plan instanceof Project ? ((Project) plan).projectList() : ScalaSeq.of(found);
    for (Object column : ScalaSeq.list(columns)) {
      Object cast = column instanceof Alias ? ((Alias) column).child() : null;
      if (cast instanceof Cast && ((Cast) cast).child() instanceof Literal
          && ((Cast) cast).getTagValue(Cast.BY_TABLE_INSERTION()).isDefined()) {
        Object text = ((Literal) ((Cast) cast).child()).value();
        if (text != null) {
          found.add(((Alias) column).name());
          found.add(text.toString());
        }
      }
    }
    return found;
  }
}
