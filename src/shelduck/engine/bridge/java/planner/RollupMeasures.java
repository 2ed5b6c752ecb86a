package shelduck.bridge.planner;

import java.math.BigDecimal;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Divide;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.CollectSet;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.HyperLogLogPlusPlus;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import scala.Option;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;

/**
 * The aggregate functions of a query that a rollup may hold as measures, and how they are computed
 * from its columns. A measure is identified by its word and column, separated by a tab; COUNT(*) by
 * its word.
 */
public final class RollupMeasures extends AbstractFunction1 {
  // Sums of decimals have ten more digits than their values; wider ones may overflow.
  private static final int MOST_DIGITS = DecimalType.MAX_PRECISION() - 10;
  private static final String COUNT = "COUNT";

  private final RollupChain chain;
  private final HashMap columns = new HashMap();
  private final HashSet needed = new HashSet();
  private final LinkedHashSet measures = new LinkedHashSet();
  private Map held = new HashMap();

  private RollupMeasures(RollupChain chain) {
    this.chain = chain;
  }

  /** Null if the groups of a rollup cannot answer the aggregate. */
  public static RollupMeasures of(Aggregate aggregate, RollupChain chain) {
    RollupMeasures found = new RollupMeasures(chain);
    for (Expression each : ScalaSeq.list(aggregate.expressions())) {
      if (!found.understands(each)) {
        return null;
      }
    }
    return found;
  }

  /** The ids of the child's columns that are used outside of measures. */
  public Set needed() {
    return needed;
  }

  public Set measures() {
    return measures;
  }

  private boolean understands(Expression expression) {
    if (expression instanceof AggregateExpression) {
      return understandsFunction((AggregateExpression) expression);
    }
    if (expression instanceof PlanExpression || expression instanceof Nondeterministic
        || expression instanceof OuterReference) {
      return RollupChain.isSafe(expression);
    }
    if (expression instanceof Attribute) {
      needed.add(((Attribute) expression).exprId());
      return true;
    }
    for (Expression each : ScalaSeq.list(expression.children())) {
      if (!understands(each)) {
        return false;
      }
    }
    return true;
  }

  private boolean understandsFunction(AggregateExpression call) {
    if (call.mode() != Complete$.MODULE$) {
      return false;
    }
    Expression function = (Expression) call.children().apply(0);
    if (!call.isDistinct() && call.filter().isEmpty() && isMeasure(call, function)) {
      return true;
    }
    boolean sameOfDistinct = call.isDistinct() || function instanceof Min
        || function instanceof Max || function instanceof HyperLogLogPlusPlus
        || function instanceof CollectSet;
    if (!sameOfDistinct) {
      return false;
    }
    RollupChain.addReferences(call, needed);
    for (Expression argument : ScalaSeq.list(function.children())) {
      if (!RollupChain.isSafe(argument)) {
        return false;
      }
    }
    return call.filter().isEmpty() || RollupChain.isSafe((Expression) call.filter().get());
  }

  private boolean isMeasure(AggregateExpression call, Expression function) {
    if (function.children().size() != 1) {
      return false;
    }
    Expression value = (Expression) function.children().apply(0);
    if (function instanceof Count && value instanceof Literal) {
      measures.add(COUNT);
      return ((Literal) value).value() != null;
    }
    boolean adds = function instanceof Sum || function instanceof Average;
    if (adds && value instanceof UnscaledValue) {
      value = ((UnscaledValue) value).child();
    }
    Attribute column = chain.source(value);
    if (column == null || (adds && !isExact(column.dataType(), function))) {
      return false;
    }
    if (adds) {
      measures.add(measure("SUM", column));
    }
    if (function instanceof Min || function instanceof Max) {
      measures.add(measure(function instanceof Min ? "MIN" : "MAX", column));
    } else if (function instanceof Count || function instanceof Average) {
      measures.add(measure(COUNT, column));
    } else if (!adds) {
      return false;
    }
    columns.put(call, column);
    return true;
  }

  private static boolean isExact(DataType type, Expression function) {
    if (type instanceof DecimalType) {
      // An average of decimals that Spark does not compute by their digits has its own rounding.
      boolean byDigits = function.children().apply(0) instanceof UnscaledValue;
      return ((DecimalType) type).precision() <= MOST_DIGITS
          && (function instanceof Sum || byDigits);
    }
    return type instanceof NumericType;
  }

  private static String measure(String word, Attribute column) {
    return TextRows.encoded(word, column.name());
  }

  /** From now on, functions are over these columns, which are found by their measures. */
  public void hold(Map found) {
    held = found;
  }

  public Object apply(Object node) {
    if (!(node instanceof AggregateExpression)) {
      return null;
    }
    AggregateExpression call = (AggregateExpression) node;
    Expression function = (Expression) call.children().apply(0);
    Attribute column = (Attribute) columns.get(call);
    boolean ofRows = function instanceof Count && !call.isDistinct() && call.filter().isEmpty();
    if (column == null && !ofRows) {
      return call;
    }
    Expression made = made(call, function, column);
    if (made == null || !made.dataType().equals(call.dataType())) {
      throw new RollupChain.RollupMisfit(call.sql());
    }
    return made;
  }

  private Expression made(AggregateExpression call, Expression function, Attribute column) {
    if (function instanceof Count) {
      Expression counted = counted(column == null ? COUNT : measure(COUNT, column));
      return new Coalesce(ScalaSeq.items(counted, zero(DataTypes.LongType)));
    }
    if (function instanceof Min || function instanceof Max) {
      Attribute best = (Attribute) held.get(
          measure(function instanceof Min ? "MIN" : "MAX", column));
      Expression value = fitted(best, column.dataType());
      return value == null ? null : over(call, over(function, value));
    }
    Expression sum = summed(call, function, column);
    if (sum == null || function instanceof Sum) {
      return sum;
    }
    Expression count = counted(measure(COUNT, column));
    return new Divide(cast(sum, DataTypes.DoubleType), cast(count, DataTypes.DoubleType));
  }

  /** The sum of a column as the function needs it: for decimals, the number of their digits. */
  private Expression summed(AggregateExpression call, Expression function, Attribute column) {
    Attribute total = (Attribute) held.get(measure("SUM", column));
    DataType base = column.dataType();
    if (!holdsSums(total.dataType(), base)) {
      return null;
    }
    Sum again = function instanceof Sum ? (Sum) over(function, total) : new Sum(total);
    Expression sum = function instanceof Sum ? over(call, again) : again.toAggregateExpression();
    if (base instanceof DecimalType) {
      DecimalType kind = (DecimalType) base;
      Expression exact = cast(sum, new DecimalType(kind.precision() + 10, kind.scale()));
      if (!(function.children().apply(0) instanceof UnscaledValue)) {
        return exact;
      }
      return function instanceof Sum ? new UnscaledValue(exact) : shifted(exact, kind.scale());
    }
    return cast(sum, base instanceof IntegralType ? DataTypes.LongType : DataTypes.DoubleType);
  }

  /** The digits of a decimal as an integer, which may be too large for a long. */
  private static Expression shifted(Expression value, int digits) {
    Decimal factor = Decimal.apply(BigDecimal.ONE.scaleByPowerOfTen(digits), digits + 1, 0);
    return new Multiply(value, new Literal(factor, new DecimalType(digits + 1, 0)));
  }

  private static boolean holdsSums(DataType total, DataType base) {
    if (base instanceof DecimalType) {
      return total instanceof DecimalType
          && ((DecimalType) total).scale() == ((DecimalType) base).scale();
    }
    return base instanceof IntegralType ? isWhole(total) : total instanceof DoubleType;
  }

  private static boolean isWhole(DataType type) {
    return type instanceof IntegralType
        || type instanceof DecimalType && ((DecimalType) type).scale() == 0;
  }

  private Expression counted(String measure) {
    Attribute count = (Attribute) held.get(measure);
    if (!isWhole(count.dataType())) {
      throw new RollupChain.RollupMisfit(measure);
    }
    return cast(new Sum(count).toAggregateExpression(), DataTypes.LongType);
  }

  public static Expression zero(DataType type) {
    return cast(new Literal(Long.valueOf(0), DataTypes.LongType), type);
  }

  private static Expression over(Expression function, Expression value) {
    return (Expression) function.withNewChildren(ScalaSeq.items(value));
  }

  private static Expression cast(Expression value, DataType type) {
    return value.dataType().equals(type) ? value : new Cast(value, type, Option.empty());
  }

  /** A column of a rollup in the base's type; null if its values may differ. */
  public static Expression fitted(Attribute column, DataType type) {
    DataType own = column.dataType();
    if (own.asNullable().equals(type.asNullable())) {
      return column;
    }
    boolean wider = own instanceof NumericType && type instanceof NumericType
        && Cast.canUpCast(own, type);
    // The type of a sum is wider than its single value needs.
    boolean exact = isWhole(own) && isWhole(type) || own instanceof DecimalType
        && type instanceof DecimalType
        && ((DecimalType) own).scale() == ((DecimalType) type).scale();
    return wider || exact ? new Cast(column, type, Option.empty()) : null;
  }
}
