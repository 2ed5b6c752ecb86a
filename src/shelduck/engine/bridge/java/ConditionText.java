package shelduck.bridge;

import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.util.V2ExpressionSQLBuilder;

/** Conditions as text that Spark can parse again: its own builder writes for other databases. */
public class ConditionText extends V2ExpressionSQLBuilder {
  protected String visitLiteral(Literal literal) {
    return new org.apache.spark.sql.catalyst.expressions.Literal(
        literal.value(), literal.dataType()).sql();
  }

  protected String visitStartsWith(String text, String part) {
    return "startswith(" + text + ", " + part + ")";
  }

  protected String visitEndsWith(String text, String part) {
    return "endswith(" + text + ", " + part + ")";
  }

  protected String visitContains(String text, String part) {
    return "contains(" + text + ", " + part + ")";
  }
}
