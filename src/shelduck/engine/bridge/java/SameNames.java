package shelduck.bridge;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Puts the attribute of the same name in the place of each attribute. */
public class SameNames extends AbstractPartialFunction {
  private final Seq attributes;

  public SameNames(Seq attributes) {
    this.attributes = attributes;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof Attribute;
  }

  public Object apply(Object node) {
    String name = ((Attribute) node).name();
    for (int i = 0; i < attributes.size(); i++) {
      if (((Attribute) attributes.apply(i)).name().equals(name)) {
        return attributes.apply(i);
      }
    }
    throw new IllegalStateException("the relation has no column " + name);
  }

  public Object applyOrElse(Object node, scala.Function1 other) {
    return isDefinedAt(node) ? apply(node) : other.apply(node);
  }
}
