package shelduck.bridge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import shelduck.bridge.planner.RollupAnswer;
import shelduck.bridge.planner.RollupChain;
import shelduck.bridge.planner.RollupFilters;
import shelduck.bridge.planner.RollupMeasures;
import shelduck.bridge.planner.RollupMisfit;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.NodeChange;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;

/**
 * Reads a rollup instead of its base: Python gets what a query needs from the base, and says which
 * plan and which columns to read. Anything that the rule does not understand stays as it is.
 */
public class RollupRule extends LakeRule {
  public TreeNode apply(TreeNode plan) {
    return answered((LogicalPlan) plan);
  }

  public LogicalPlan answered(LogicalPlan plan) {
    if (plan instanceof Aggregate) {
      RollupChain chain = RollupChain.of(((Aggregate) plan).child());
      RollupMeasures measures = chain == null ? null : RollupMeasures.of((Aggregate) plan, chain);
      if (measures != null) {
        return answered(plan, chain, measures);
      }
    }
    RollupChain chain = RollupChain.of(plan);
    if (chain != null) {
      return answered(plan, chain, null);
    }
    return withAnsweredChildren(plan);
  }

  private static LogicalPlan answered(LogicalPlan plan, RollupChain chain, RollupMeasures measures) {
    Function chooser = chain.index().chooser();
    try {
      LogicalPlan found = chain.isSafe() ? replaced(plan, chain, measures, chooser) : null;
      return found == null ? plan : found;
    } catch (RollupMisfit misfit) {
      return plan;
    } catch (Throwable error) {
      return left(plan, chooser, error);
    }
  }

  /** A class of this Spark may differ from the one known here; the base has the rows too. */
  private static LogicalPlan left(LogicalPlan plan, Function chooser, Throwable error) {
    if (!(error instanceof Exception) && !(error instanceof LinkageError)) {
      throw (Error) error;
    }
    chooser.apply(TextRows.encoded("failed", error.toString()) + '\n');
    return plan;
  }

  private static LogicalPlan replaced(
      LogicalPlan plan, RollupChain chain, RollupMeasures measures, Function chooser) {
    List levels = chain.levels(measures == null ? chain.output() : measures.needed());
    List<Attribute> columns = chain.columns((Set<ExprId>) levels.get(levels.size() - 1));
    if (columns == null) {
      return null;
    }
    List answer = (List) chooser.apply(wanted(chain, columns, measures));
    if (answer == null) {
      return null;
    }
    RollupAnswer rollup = new RollupAnswer((LogicalPlan) answer.get(0), (String) answer.get(1));
    LogicalPlan found;
    if (measures == null) {
      found = chain.over(rollup.rows(columns), levels, new ArrayList());
    } else if (rollup.groups()) {
      HashMap held = new HashMap();
      LogicalPlan bottom = rollup.groups(columns, measures.measures(), held);
      measures.hold(held);
      found = over(plan, chain.over(bottom, levels, new ArrayList(held.values())));
      found = (LogicalPlan) found.transformExpressionsUp(new NodeChange(measures));
    } else {
      // Its rows are those of the base: the aggregate stays, and uses its own columns.
      Set all = new HashSet();
      for (Expression each : ScalaSeq.list(plan.expressions())) {
        RollupChain.addReferences(each, all);
      }
      levels = chain.levels(all);
      columns = chain.columns((Set<ExprId>) levels.get(levels.size() - 1));
      found = over(plan, chain.over(rollup.rows(columns), levels, new ArrayList()));
    }
    found = optimized(found, chain);
    if (!sameOutput(plan, found)) {
      return null;
    }
    chooser.apply(TextRows.encoded("taken", (String) answer.get(2)) + collector(chain) + '\n');
    return found;
  }

  private static String wanted(RollupChain chain, List<Attribute> columns, RollupMeasures measures) {
    LinkedHashSet rows = new LinkedHashSet();
    rows.add(measures == null ? "rows" : "groups");
    for (Attribute column : columns) {
      rows.add(TextRows.encoded("column", column.name()));
    }
    if (measures != null) {
      for (Object measure : measures.measures()) {
        rows.add("measure\t" + measure);
      }
    }
    RollupFilters.describe(chain, rows);
    StringBuilder text = new StringBuilder();
    for (Object row : rows) {
      text.append(row).append('\n');
    }
    return text.toString();
  }

  private static LogicalPlan over(LogicalPlan plan, LogicalPlan child) {
    return (LogicalPlan) plan.withNewChildren(ScalaSeq.items(child));
  }

  /** Filters and columns move down to the rollup's files; a subquery's columns keep their ids. */
  private static LogicalPlan optimized(LogicalPlan plan, RollupChain chain) {
    SparkSession session = (SparkSession) chain.source().sparkSession();
    Object found = session.sessionState().optimizer().execute(new Subquery(plan, false));
    return ((Subquery) found).child();
  }

  /** The caller that plans the query may collect what was chosen for it. */
  private static String collector(RollupChain chain) {
    SparkSession session = (SparkSession) chain.source().sparkSession();
    String token = session.sparkContext().getLocalProperty("shelduck.rollup.choices");
    return token == null ? "" : '\t' + token;
  }

  private static boolean sameOutput(LogicalPlan one, LogicalPlan other) {
    Seq wanted = one.output();
    Seq found = other.output();
    if (wanted.size() != found.size()) {
      return false;
    }
    for (int i = 0; i < wanted.size(); i++) {
      Attribute a = (Attribute) wanted.apply(i);
      Attribute b = (Attribute) found.apply(i);
      boolean same = a.exprId().equals(b.exprId()) && a.name().equals(b.name())
          && a.dataType().asNullable().equals(b.dataType().asNullable());
      if (!same) {
        return false;
      }
    }
    return true;
  }
}
