package shelduck.bridge.planner;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;
import shelduck.bridge.scan.LakeFileIndex;

/** Columns made of the rows of a table that may have rollups, and the filters that choose these. */
public final class RollupChain {
  private final LogicalRelation relation;
  private final List<NamedExpression> made;
  private final List<Expression> filters;

  private RollupChain(LogicalRelation relation, Seq made, Seq filters) {
    this.relation = relation;
    this.made = ScalaSeq.list(made);
    this.filters = ScalaSeq.list(filters);
  }

  /** Null if the plan is something else. */
  public static RollupChain of(final LogicalPlan top) {
    LakeFileIndex index = LakeFileIndex.of(LakeRule.below(top));
    if (index == null || index.chooser() == null) {
      return null;
    }
    // What Spark would not compute twice is merged as well: nothing may stay between.
    SQLConf inline = SQLConf.get().clone();
    inline.setConfString("spark.sql.optimizer.collapseProjectAlwaysInline", "true");
    Tuple3 parts = (Tuple3) SQLConf.withExistingConf(inline, new AbstractFunction0() {
      public Object apply() {
        return PhysicalOperation$.MODULE$.unapply(top).get();
      }
    });
    return parts._3() instanceof LogicalRelation
        ? new RollupChain((LogicalRelation) parts._3(), (Seq) parts._1(), (Seq) parts._2()) : null;
  }

  public SparkSession session() {
    return (SparkSession) ((HadoopFsRelation) relation.relation()).sparkSession();
  }

  public Function chooser() {
    return LakeFileIndex.of(relation).chooser();
  }

  /** Whether its expressions always give the same result for the same values, wherever they run. */
  public boolean isSafe() {
    for (Expression each : used(made)) {
      if (!isSafe(each)) {
        return false;
      }
    }
    return true;
  }

  public static boolean isSafe(Expression expression) {
    if (!expression.deterministic() || expression instanceof OuterReference) {
      return false;
    }
    if (expression instanceof PlanExpression) {
      // A definition in WITH is elsewhere in the plan.
      return expression instanceof ScalarSubquery && expression.children().isEmpty()
          && !((ScalarSubquery) expression).plan().containsPattern(TreePattern$.MODULE$.CTE());
    }
    for (Expression child : ScalaSeq.list(expression.children())) {
      if (!isSafe(child)) {
        return false;
      }
    }
    return true;
  }

  /** Those of its columns that have these ids; all of them if that is null. */
  public List<NamedExpression> kept(Set<ExprId> ids) {
    ArrayList<NamedExpression> kept = new ArrayList<NamedExpression>();
    for (NamedExpression each : made) {
      if (ids == null || ids.contains(each.exprId())) {
        kept.add(each);
      }
    }
    return kept;
  }

  /** What some of its columns are made of, and its filters. */
  private List<Expression> used(List kept) {
    ArrayList<Expression> used = new ArrayList<Expression>(kept);
    used.addAll(filters);
    return used;
  }

  public static void addReferences(Expression expression, Set ids) {
    for (Attribute column : ScalaSeq.list(expression.references().toSeq())) {
      ids.add(column.exprId());
    }
  }

  /** The relation's columns that are used for some of its own; null if one is none of the files. */
  public List<Attribute> columns(List kept) {
    AttributeSet wanted = AttributeSet$.MODULE$.apply(ScalaSeq.of(used(kept)));
    ArrayList<Attribute> found = new ArrayList<Attribute>();
    for (Attribute column : ScalaSeq.list(relation.output())) {
      if (wanted.contains(column)) {
        if (LakeFileIndex.isMetadata(column)) {
          return null;
        }
        found.add(column);
      }
    }
    return found.size() == wanted.size() ? found : null;
  }

  /** The relation's column that one of its own is, under whatever name; null if it is none. */
  public Attribute source(Expression value) {
    return value instanceof Attribute
        ? column(LakeRule.source(ScalaSeq.of(made), ((Attribute) value).exprId())) : null;
  }

  private Attribute column(Expression value) {
    boolean isIt = value instanceof Attribute && !LakeFileIndex.isMetadata((Attribute) value)
        && relation.outputSet().contains((Attribute) value);
    return isIt ? (Attribute) value : null;
  }

  /** Some of its columns, and {@code more}, over another plan, which has what they are made of. */
  public LogicalPlan over(LogicalPlan bottom, List kept, Collection more) {
    LogicalPlan rows = bottom;
    for (Expression each : filters) {
      rows = new Filter(each, rows);
    }
    ArrayList columns = new ArrayList(kept);
    columns.addAll(more);
    return new Project(ScalaSeq.of(columns), rows);
  }

  /**
   * Adds which columns a filter compares with values that are the same for all rows: {@code equal} or
   * {@code range} with the name of a column, separated by a tab.
   */
  public void describe(Set rows) {
    for (Expression filter : filters) {
      if (filter instanceof In || filter instanceof InSet) {
        HashSet others = new HashSet();
        for (int i = 1; i < filter.children().size(); i++) {
          addReferences((Expression) filter.children().apply(i), others);
        }
        add(others.isEmpty(), "equal", (Expression) filter.children().apply(0), rows);
      } else if (filter instanceof BinaryComparison || filter instanceof StartsWith) {
        Expression one = (Expression) filter.children().apply(0);
        Expression other = (Expression) filter.children().apply(1);
        String word =
            filter instanceof EqualTo || filter instanceof EqualNullSafe ? "equal" : "range";
        add(isFixed(other), word, one, rows);
        add(isFixed(one) && !(filter instanceof StartsWith), word, other, rows);
      }
    }
  }

  private static boolean isFixed(Expression value) {
    return value.references().isEmpty();
  }

  private void add(boolean isFixed, String word, Expression value, Set rows) {
    Attribute column = isFixed ? column(value) : null;
    if (column != null) {
      rows.add(TextRows.encoded(word, column.name()));
    }
  }

  /** A rollup does not hold what it was chosen for, because its columns have other types. */
  public static class RollupMisfit extends RuntimeException {
    public RollupMisfit(String what) {
      super(what);
    }
  }
}
