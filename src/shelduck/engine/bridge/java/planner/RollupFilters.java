package shelduck.bridge.planner;

import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import shelduck.bridge.python.TextRows;

/** Which columns a filter compares with values that are the same for all rows. */
public final class RollupFilters {
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
