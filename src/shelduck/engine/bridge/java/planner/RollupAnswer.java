package shelduck.bridge.planner;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.NodeChange;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;

/** A rollup's plan, and which of its columns replace columns and measures of the base. */
public final class RollupAnswer {
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
      throw new RollupMisfit("rows of groups");
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
        throw new RollupMisfit(base.name());
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
      throw new RollupMisfit(key);
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
