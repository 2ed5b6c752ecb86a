package shelduck.bridge.plans;

import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** What Spark puts in the place of nodes, when it transforms a plan or an expression. */
public final class NodeChange extends AbstractPartialFunction {
  private final Function1 change;

  /** {@code change} makes the new node of one; null of one that stays. */
  public NodeChange(Function1 change) {
    this.change = change;
  }

  public boolean isDefinedAt(Object node) {
    return change.apply(node) != null;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    Object changed = change.apply(node);
    return changed == null ? otherwise.apply(node) : changed;
  }
}
