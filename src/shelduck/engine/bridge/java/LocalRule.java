package shelduck.bridge;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection;
import org.apache.spark.sql.catalyst.expressions.InterpretedOrdering;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers$;
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils;
import org.apache.spark.sql.execution.aggregate.SortBasedAggregationIterator;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.Tuple4;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction2;
import shelduck.bridge.plans.LakeRows;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.ScalaSeq;

/**
 * Groups and sorts few rows of a lake that the plan itself has, such as rows of a catalog, as Spark
 * filters and projects them: while it optimizes, without a job and a shuffle. Spark's own code
 * computes. What it cannot compute here, also because of an error in a value, stays as it is.
 */
public class LocalRule extends LakeRule {
  /** The setting of a session that turns the rule off. */
  public static final String SETTING = "spark.shelduck.localAnswers";
  private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
  /** For more rows, a job costs less than a single thread. */
  private static final int MOST = 10000;

  public TreeNode apply(TreeNode plan) {
    return isOn(SETTING) && mayHoldRows() ? answered((LogicalPlan) plan) : plan;
  }

  /** Whether Spark computes rows while it optimizes; a session can exclude Spark's rule. */
  private static boolean mayHoldRows() {
    for (String each : SQLConf.get().getConfString(EXCLUDED, "").split(",")) {
      if (each.trim().equals(ConvertToLocalRelation$.MODULE$.ruleName())) {
        return false;
      }
    }
    return true;
  }

  public LogicalPlan answered(LogicalPlan plan) {
    final LogicalPlan at = withAnsweredChildren(plan);
    if (!isOverFewRows(at)) {
      return at;
    }
    // Code for a few rows takes longer to compile than to interpret.
    SQLConf plain = SQLConf.get().clone();
    plain.setConfString("spark.sql.codegen.factoryMode", "NO_CODEGEN");
    try {
      Object found = SQLConf.withExistingConf(plain, new AbstractFunction0() {
        public Object apply() {
          return computed(at);
        }
      });
      return found == null ? at : (LogicalPlan) found;
    } catch (Exception error) {
      // The job raises it, if there is one.
      return at;
    } catch (LinkageError error) {
      return at;
    }
  }

  private static boolean isOverFewRows(LogicalPlan plan) {
    boolean known = plan instanceof Aggregate || plan instanceof Sort || plan instanceof Project
        || plan instanceof Filter || plan instanceof GlobalLimit;
    if (!known) {
      return false;
    }
    LogicalPlan below = (LogicalPlan) plan.children().apply(0);
    if (plan instanceof GlobalLimit) {
      if (!(below instanceof LocalLimit)) {
        return false;
      }
      below = (LogicalPlan) below.children().apply(0);
    }
    return below instanceof LocalRelation && ((LocalRelation) below).data() instanceof LakeRows
        && ((LocalRelation) below).data().size() <= MOST;
  }

  /** Null if only a job can compute it. */
  private static LogicalPlan computed(LogicalPlan plan) {
    if (plan instanceof Aggregate) {
      return grouped((Aggregate) plan, (LocalRelation) ((Aggregate) plan).child());
    }
    if (plan instanceof Sort) {
      return sorted((Sort) plan, (LocalRelation) ((Sort) plan).child());
    }
    // Spark's rule came before there were rows.
    return ConvertToLocalRelation$.MODULE$.apply(plan);
  }

  private static LogicalPlan sorted(Sort sort, LocalRelation rows) {
    if (!areKnown(sort.order())) {
      return null;
    }
    Object[] data = CollectionConverters.asJava(rows.data()).toArray();
    Arrays.sort(data, (Comparator) new InterpretedOrdering(sort.order(), rows.output()));
    return LakeRows.relation(rows.output(), Arrays.asList(data));
  }

  private static LogicalPlan grouped(Aggregate aggregate, LocalRelation rows) {
    Option parts = PhysicalAggregation$.MODULE$.unapply(aggregate);
    if (parts.isEmpty() || !areKnown(aggregate.groupingExpressions())
        || !areKnown(aggregate.aggregateExpressions())) {
      return null;
    }
    Seq<NamedExpression> keys = (Seq<NamedExpression>) ((Tuple4) parts.get())._1();
    Seq<AggregateExpression> calls = (Seq<AggregateExpression>) ((Tuple4) parts.get())._2();
    if (!areBytes(keys) || !areWhole(calls)) {
      return null;
    }
    List<InternalRow> input = byKeys(keys, rows);
    ArrayList found = new ArrayList();
    if (!input.isEmpty() || keys.isEmpty()) {
      SortBasedAggregationIterator groups =
          iterator(keys, rows.output(), input, calls, (Seq) ((Tuple4) parts.get())._3());
      if (input.isEmpty()) {
        found.add(groups.outputForEmptyGroupingKeyWithoutInput().copy());
      }
      while (!input.isEmpty() && groups.hasNext()) {
        found.add(((UnsafeRow) groups.next()).copy());
      }
    }
    return LakeRows.relation(aggregate.output(), found);
  }

  /** The rows with those of one key beside each other. */
  private static List<InternalRow> byKeys(Seq keys, LocalRelation rows) {
    List<InternalRow> all = ScalaSeq.list(rows.data());
    if (keys.isEmpty()) {
      return all;
    }
    UnsafeProjection key = UnsafeProjection.create(keys, rows.output());
    LinkedHashMap<UnsafeRow, List<InternalRow>> groups =
        new LinkedHashMap<UnsafeRow, List<InternalRow>>();
    for (InternalRow row : all) {
      UnsafeRow of = key.apply(row);
      List group = (List) groups.get(of);
      if (group == null) {
        group = new ArrayList<InternalRow>();
        groups.put(of.copy(), group);
      }
      group.add(row);
    }
    ArrayList<InternalRow> found = new ArrayList<InternalRow>(all.size());
    for (List<InternalRow> each : groups.values()) {
      found.addAll(each);
    }
    return found;
  }

  private static SortBasedAggregationIterator iterator(
      Seq keys, Seq columns, List<InternalRow> input, Seq<AggregateExpression> calls,
      Seq results) {
    ArrayList attributes = new ArrayList();
    for (AggregateExpression call : ScalaSeq.list(calls)) {
      attributes.add(call.resultAttribute());
    }
    Object[] known = {Integer.valueOf(0), keys, columns,
      CollectionConverters.asScala(input.iterator()), calls, ScalaSeq.of(attributes),
      Integer.valueOf(0), results, new AbstractFunction2() {
        public Object apply(Object expressions, Object inputs) {
          return new InterpretedMutableProjection((Seq) expressions, (Seq) inputs);
        }
      }};
    // Versions of Spark count different things at the end.
    Constructor made = SortBasedAggregationIterator.class.getConstructors()[0];
    Object[] arguments = Arrays.copyOf(known, made.getParameterTypes().length);
    for (int i = known.length; i < arguments.length; i++) {
      arguments[i] = new SQLMetric("sum", 0L);
    }
    try {
      return (SortBasedAggregationIterator) made.newInstance(arguments);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Whether equal keys have equal bytes. */
  private static boolean areBytes(Seq<? extends NamedExpression> keys) {
    for (NamedExpression each : ScalaSeq.list(keys)) {
      Expression key = (Expression) each;
      if (!UnsafeRowUtils.isBinaryStable(key.dataType())
          || NormalizeFloatingNumbers$.MODULE$.normalize(key) != key) {
        return false;
      }
    }
    return true;
  }

  private static boolean areWhole(Seq<AggregateExpression> calls) {
    for (AggregateExpression call : ScalaSeq.list(calls)) {
      if (call.mode() != Complete$.MODULE$ || call.isDistinct()) {
        return false;
      }
    }
    return true;
  }

  /** Whether Spark's own code computes the same each time, from the row alone. */
  private static boolean areKnown(Seq expressions) {
    for (Expression each : (List<Expression>) ScalaSeq.list(expressions)) {
      if (!each.deterministic() || each instanceof PlanExpression
          || each instanceof UserDefinedExpression || !areKnown(each.children())) {
        return false;
      }
    }
    return true;
  }
}
