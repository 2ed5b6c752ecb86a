package shelduck.bridge;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

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
    chooser.apply("failed\t" + TextRows.encoded(error.toString()) + '\n');
    return plan;
  }

  private static LogicalPlan replaced(
      LogicalPlan plan, RollupChain chain, RollupMeasures measures, Function chooser) {
    List levels = chain.levels(measures == null ? chain.output() : measures.needed());
    List columns = chain.columns((Set) levels.get(levels.size() - 1));
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
      found = (LogicalPlan) found.transformExpressionsUp(measures);
    } else {
      // Its rows are those of the base: the aggregate stays, and uses its own columns.
      Set all = new HashSet();
      for (int i = 0; i < plan.expressions().size(); i++) {
        RollupChain.addReferences((Expression) plan.expressions().apply(i), all);
      }
      levels = chain.levels(all);
      columns = chain.columns((Set) levels.get(levels.size() - 1));
      found = over(plan, chain.over(rollup.rows(columns), levels, new ArrayList()));
    }
    found = optimized(found, chain);
    if (!sameOutput(plan, found)) {
      return null;
    }
    chooser.apply("taken\t" + TextRows.encoded((String) answer.get(2)) + collector(chain) + '\n');
    return found;
  }

  private static String wanted(RollupChain chain, List columns, RollupMeasures measures) {
    LinkedHashSet rows = new LinkedHashSet();
    rows.add(measures == null ? "rows" : "groups");
    for (int i = 0; i < columns.size(); i++) {
      rows.add("column\t" + TextRows.encoded(((Attribute) columns.get(i)).name()));
    }
    if (measures != null) {
      for (Iterator each = measures.measures().iterator(); each.hasNext();) {
        rows.add("measure\t" + each.next());
      }
    }
    RollupFilters.describe(chain, rows);
    StringBuilder text = new StringBuilder();
    for (Iterator each = rows.iterator(); each.hasNext();) {
      text.append(each.next()).append('\n');
    }
    return text.toString();
  }

  private static LogicalPlan over(LogicalPlan plan, LogicalPlan child) {
    ArrayList children = new ArrayList();
    children.add(child);
    return (LogicalPlan) plan.withNewChildren(ScalaSeq.of(children));
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
