package shelduck.bridge.planner;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
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
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;
import shelduck.bridge.scan.LakeFileIndex;

/** Projects and filters above the relation of a table that may have rollups. */
public final class RollupChain {
  private final ArrayList nodes = new ArrayList();
  private LogicalRelation relation;
  private LakeFileIndex index;

  private RollupChain() {}

  /** Null if the plan is something else. */
  public static RollupChain of(LogicalPlan top) {
    RollupChain chain = new RollupChain();
    LogicalPlan at = top;
    while (at instanceof Project || at instanceof Filter) {
      chain.nodes.add(at);
      at = (LogicalPlan) at.children().apply(0);
    }
    chain.index = LakeFileIndex.of(at);
    if (chain.index == null || chain.index.chooser() == null) {
      return null;
    }
    chain.relation = (LogicalRelation) at;
    return chain;
  }

  public LakeFileIndex index() {
    return index;
  }

  public HadoopFsRelation source() {
    return (HadoopFsRelation) relation.relation();
  }

  /** Whether its expressions always give the same result for the same values, wherever they run. */
  public boolean isSafe() {
    for (int n = 0; n < nodes.size(); n++) {
      for (Expression each : ScalaSeq.list(node(n).expressions())) {
        if (!isSafe(each)) {
          return false;
        }
      }
    }
    return true;
  }

  public static boolean isSafe(Expression expression) {
    if (!expression.deterministic() || expression instanceof OuterReference) {
      return false;
    }
    if (expression instanceof PlanExpression) {
      return expression instanceof ScalarSubquery && expression.children().isEmpty()
          && !namesQueries(((ScalarSubquery) expression).plan());
    }
    for (Expression child : ScalaSeq.list(expression.children())) {
      if (!isSafe(child)) {
        return false;
      }
    }
    return true;
  }

  /** A definition in WITH is elsewhere in the plan. */
  private static boolean namesQueries(LogicalPlan plan) {
    for (LogicalPlan each : ScalaSeq.list(plan.children())) {
      if (namesQueries(each)) {
        return true;
      }
    }
    return plan instanceof CTERelationRef;
  }

  /** Ids of all columns in the output at the top. */
  public Set output() {
    HashSet ids = new HashSet();
    Seq columns = nodes.isEmpty() ? relation.output() : node(0).output();
    for (int i = 0; i < columns.size(); i++) {
      ids.add(((Attribute) columns.apply(i)).exprId());
    }
    return ids;
  }

  /** The ids that each node's output needs, the top first, and last those of the relation. */
  public List levels(Set needed) {
    ArrayList levels = new ArrayList();
    levels.add(needed);
    for (int n = 0; n < nodes.size(); n++) {
      Set above = (Set) levels.get(n);
      HashSet below = new HashSet();
      if (node(n) instanceof Filter) {
        below.addAll(above);
        addReferences(((Filter) node(n)).condition(), below);
      } else {
        Seq<NamedExpression> made = ((Project) node(n)).projectList();
        for (NamedExpression each : ScalaSeq.list(made)) {
          if (above.contains(each.exprId())) {
            addReferences((Expression) each, below);
          }
        }
      }
      levels.add(below);
    }
    return levels;
  }

  public static void addReferences(Expression expression, Set ids) {
    Seq columns = expression.references().toSeq();
    for (int i = 0; i < columns.size(); i++) {
      ids.add(((Attribute) columns.apply(i)).exprId());
    }
  }

  /** The relation's columns with these ids; null if one is not a column of the files. */
  public List<Attribute> columns(Set<ExprId> ids) {
    ArrayList<Attribute> found = new ArrayList<Attribute>();
    for (Attribute column : ScalaSeq.list(relation.output())) {
      if (ids.contains(column.exprId())) {
        if (LakeFileIndex.isMetadata(column)) {
          return null;
        }
        found.add(column);
      }
    }
    return found.size() == ids.size() ? found : null;
  }

  /** The relation's column with this id above node {@code level}; null if there is none. */
  public Attribute column(Expression value, int level) {
    if (!(value instanceof Attribute)) {
      return null;
    }
    ExprId id = ((Attribute) value).exprId();
    for (int n = level; n < nodes.size(); n++) {
      if (node(n) instanceof Project) {
        Attribute source = LakeRule.source(((Project) node(n)).projectList(), id);
        id = source == null ? null : source.exprId();
      }
    }
    HashSet ids = new HashSet();
    ids.add(id);
    List found = columns(ids);
    return found == null ? null : (Attribute) found.get(0);
  }

  public int size() {
    return nodes.size();
  }

  /** The condition of a node; null if it is not a filter. */
  public Expression filter(int n) {
    return node(n) instanceof Filter ? ((Filter) node(n)).condition() : null;
  }

  /**
   * The same over another plan, which has the needed columns under their ids, and {@code more}
   * columns in the output at the top.
   */
  public LogicalPlan over(LogicalPlan bottom, List levels, List more) {
    LogicalPlan plan = bottom;
    for (int n = nodes.size() - 1; n >= 0; n--) {
      if (node(n) instanceof Filter) {
        plan = (LogicalPlan) node(n).withNewChildren(ScalaSeq.items(plan));
        continue;
      }
      Seq<NamedExpression> made = ((Project) node(n)).projectList();
      ArrayList kept = new ArrayList();
      for (NamedExpression each : ScalaSeq.list(made)) {
        if (((Set) levels.get(n)).contains(each.exprId())) {
          kept.add(each);
        }
      }
      kept.addAll(more);
      plan = new Project(ScalaSeq.of(kept), plan);
    }
    return plan;
  }

  private LogicalPlan node(int n) {
    return (LogicalPlan) nodes.get(n);
  }

  /** A rollup does not hold what it was chosen for, because its columns have other types. */
  public static class RollupMisfit extends RuntimeException {
    public RollupMisfit(String what) {
      super(what);
    }
  }

  /** Which columns a filter compares with values that are the same for all rows. */
  public static final class RollupFilters {
    private RollupFilters() {}

    /** Adds {@code equal} or {@code range} with the name of a column, separated by a tab. */
    public static void describe(RollupChain chain, Set rows) {
      for (int n = 0; n < chain.size(); n++) {
        if (chain.filter(n) != null) {
          describe(chain.filter(n), chain, n + 1, rows);
        }
      }
    }

    private static void describe(Expression filter, RollupChain chain, int level, Set rows) {
      if (filter instanceof And) {
        describe(((And) filter).left(), chain, level, rows);
        describe(((And) filter).right(), chain, level, rows);
        return;
      }
      if (filter instanceof In || filter instanceof InSet) {
        for (int i = 1; i < filter.children().size(); i++) {
          if (!isFixed((Expression) filter.children().apply(i))) {
            return;
          }
        }
        add("equal", chain.column((Expression) filter.children().apply(0), level), rows);
      } else if (filter instanceof BinaryComparison || filter instanceof StartsWith) {
        Expression one = (Expression) filter.children().apply(0);
        Expression other = (Expression) filter.children().apply(1);
        boolean equal = filter instanceof EqualTo || filter instanceof EqualNullSafe;
        if (isFixed(other)) {
          add(equal ? "equal" : "range", chain.column(one, level), rows);
        } else if (isFixed(one) && !(filter instanceof StartsWith)) {
          add(equal ? "equal" : "range", chain.column(other, level), rows);
        }
      }
    }

    private static boolean isFixed(Expression value) {
      return value.references().isEmpty();
    }

    private static void add(String word, Attribute column, Set rows) {
      if (column != null) {
        rows.add(TextRows.encoded(word, column.name()));
      }
    }
  }
}
