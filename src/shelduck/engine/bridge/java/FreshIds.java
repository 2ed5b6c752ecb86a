package shelduck.bridge;

import java.util.HashMap;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Gives all columns of a plan new ids, so that it can occur twice in another plan. */
public class FreshIds extends AbstractPartialFunction {
  private final HashMap ids = new HashMap();

  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference || node instanceof Alias;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (node instanceof AttributeReference) {
      AttributeReference column = (AttributeReference) node;
      return column.withExprId(fresh(column.exprId()));
    }
    if (node instanceof Alias) {
      Alias alias = (Alias) node;
      return new Alias(alias.child(), alias.name(), fresh(alias.exprId()), alias.qualifier(),
          alias.explicitMetadata(), alias.nonInheritableMetadataKeys());
    }
    return otherwise.apply(node);
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
