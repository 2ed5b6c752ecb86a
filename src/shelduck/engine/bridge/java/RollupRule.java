package shelduck.bridge;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.planner.RollupChain;
import shelduck.bridge.planner.RollupMeasures;
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
    Function chooser = chain.chooser();
    try {
      LogicalPlan found = chain.isSafe() ? replaced(plan, chain, measures, chooser) : null;
      return found == null ? plan : found;
    } catch (RollupChain.RollupMisfit misfit) {
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
    List kept = chain.kept(measures == null ? null : measures.needed());
    List<Attribute> columns = chain.columns(kept);
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
      found = chain.over(rollup.rows(columns), kept, Collections.emptyList());
    } else if (rollup.groups()) {
      HashMap held = new HashMap();
      LogicalPlan bottom = rollup.groups(columns, measures.measures(), held);
      measures.hold(held);
      found = over(plan, chain.over(bottom, kept, held.values()));
      found = (LogicalPlan) found.transformExpressionsUp(new NodeChange(measures));
    } else {
      // Its rows are those of the base: the aggregate stays, and uses its own columns.
      Set all = new HashSet();
      for (Expression each : ScalaSeq.list(plan.expressions())) {
        RollupChain.addReferences(each, all);
      }
      kept = chain.kept(all);
      found = over(
          plan, chain.over(rollup.rows(chain.columns(kept)), kept, Collections.emptyList()));
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
    chain.describe(rows);
    return String.join("\n", rows) + '\n';
  }

  private static LogicalPlan over(LogicalPlan plan, LogicalPlan child) {
    return (LogicalPlan) plan.withNewChildren(ScalaSeq.items(child));
  }

  /** Filters and columns move down to the rollup's files; a subquery's columns keep their ids. */
  private static LogicalPlan optimized(LogicalPlan plan, RollupChain chain) {
    Object found = chain.session().sessionState().optimizer().execute(new Subquery(plan, false));
    return ((Subquery) found).child();
  }

  /** The caller that plans the query may collect what was chosen for it. */
  private static String collector(RollupChain chain) {
    String token = chain.session().sparkContext().getLocalProperty("shelduck.rollup.choices");
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

  /** A rollup's plan, and which of its columns replace columns and measures of the base. */
  public static final class RollupAnswer {
    private final LogicalPlan plan;
    private final boolean groups;
    private final HashMap names = new HashMap();

    /** The rows are {@code rows} or {@code groups}, then what a column holds and its name. */
    public RollupAnswer(LogicalPlan plan, String text) {
      this.plan = (LogicalPlan) plan.transformAllExpressions(new NodeChange(new FreshIds()));
      List rows = TextRows.rows(text);
      this.groups = ((String[]) rows.get(0))[0].equals("groups");
      for (int i = 1; i < rows.size(); i++) {
        String[] row = (String[]) rows.get(i);
        int last = row.length - 1;
        names.put(TextRows.encoded((String[]) Arrays.copyOf(row, last)), row[last]);
      }
    }

    /** True if one row represents many rows of the base. */
    public boolean groups() {
      return groups;
    }

    /** The rollup with the columns of the base, under their names and ids. */
    public LogicalPlan rows(List<Attribute> columns) {
      if (groups) {
        throw new RollupChain.RollupMisfit("rows of groups");
      }
      return new Project(ScalaSeq.of(made(columns)), plan);
    }

    /** The same with a column for each measure, which is added to {@code held}. */
    public LogicalPlan groups(List<Attribute> columns, Set<String> measures, Map<String, Attribute> held) {
      ArrayList<NamedExpression> made = made(columns);
      for (String measure : measures) {
        Alias alias = alias(measure(measure), "measure", NamedExpression.newExprId());
        made.add(alias);
        held.put(measure, alias.toAttribute());
      }
      return new Project(ScalaSeq.of(made), plan);
    }

    /** In each group, either all rows or no rows have a value in a column by which it is grouped. */
    private Expression measure(String measure) {
      if (names.containsKey(measure) || !measure.startsWith("COUNT\t")) {
        return column(measure);
      }
      Attribute all = column("COUNT");
      Attribute key = column("column" + measure.substring("COUNT".length()));
      return new If(new IsNull(key), RollupMeasures.zero(all.dataType()), all);
    }

    private ArrayList<NamedExpression> made(List<Attribute> columns) {
      ArrayList<NamedExpression> made = new ArrayList<NamedExpression>();
      for (Attribute base : columns) {
        Attribute found = column("column\t" + TextRows.encoded(base.name()));
        Expression value = RollupMeasures.fitted(found, base.dataType());
        if (value == null) {
          throw new RollupChain.RollupMisfit(base.name());
        }
        made.add(alias(value, base.name(), base.exprId()));
      }
      return made;
    }

    private Attribute column(String key) {
      Attribute found = null;
      for (Attribute column : ScalaSeq.list(plan.output())) {
        if (column.name().equals(names.get(key))) {
          found = column;
        }
      }
      if (found == null) {
        throw new RollupChain.RollupMisfit(key);
      }
      return found;
    }

    private static Alias alias(Expression value, String name, ExprId id) {
      Seq nothing = ScalaSeq.items();
      return new Alias(value, name, id, nothing, Option.empty(), nothing);
    }

    /** Gives all columns of a plan new ids, so that it can occur twice in another plan. */
    private static final class FreshIds extends AbstractFunction1 {
      private final HashMap ids = new HashMap();

      public Object apply(Object node) {
        if (!(node instanceof AttributeReference || node instanceof Alias)) {
          return null;
        }
        if (node instanceof AttributeReference) {
          AttributeReference column = (AttributeReference) node;
          return column.withExprId(fresh(column.exprId()));
        }
        Alias alias = (Alias) node;
        return new Alias(alias.child(), alias.name(), fresh(alias.exprId()), alias.qualifier(),
            alias.explicitMetadata(), alias.nonInheritableMetadataKeys());
      }

      private ExprId fresh(ExprId id) {
        Object known = ids.get(id);
        if (known == null) {
          known = NamedExpression.newExprId();
          ids.put(id, known);
        }
        return (ExprId) known;
      }
    }
  }
}
