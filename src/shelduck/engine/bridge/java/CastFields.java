package shelduck.bridge;

import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Takes a field before its struct is cast and not afterwards. The result is the same, because
 * structs are cast by position. So {@code cast(s as struct<new>).new} is {@code s.old}, the name in
 * the files.
 */
public class CastFields extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    if (!(node instanceof GetStructField)) {
      return false;
    }
    Expression child = ((GetStructField) node).child();
    return child instanceof Cast && child.dataType() instanceof StructType
        && ((Cast) child).child().dataType() instanceof StructType;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    GetStructField field = (GetStructField) node;
    Cast cast = (Cast) field.child();
    Expression before = new GetStructField(cast.child(), field.ordinal(), Option.empty());
    DataType wanted = field.dataType();
    return DataType.equalsIgnoreNullability(before.dataType(), wanted) ? (Object) before
        : cast.copy(before, wanted, cast.timeZoneId(), cast.evalMode());
  }
}
