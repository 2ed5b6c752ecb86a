package shelduck.bridge;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Drops the qualifier of every column, so that {@code t.x} can only mean field x of struct t. */
public class BareNames extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!(node instanceof AttributeReference)) {
      return otherwise.apply(node);
    }
    AttributeReference column = (AttributeReference) node;
    return new AttributeReference(column.name(), column.dataType(), column.nullable(),
        column.metadata(), column.exprId(), ScalaSeq.of(new java.util.ArrayList()));
  }
}
