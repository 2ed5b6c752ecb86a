package shelduck.bridge;

import java.util.ArrayList;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/** A rule that the bridge adds to the optimizer of a session. */
public abstract class LakeRule extends Rule {
  /** Adds this rule after the existing ones, unless there is one of its class. */
  public void install(SparkSession session) {
    ExperimentalMethods methods = session.experimental();
    synchronized (methods) {
      ArrayList rules = new ArrayList();
      Seq known = methods.extraOptimizations();
      for (int i = 0; i < known.size(); i++) {
        if (known.apply(i).getClass() == getClass()) {
          return;
        }
        rules.add(known.apply(i));
      }
      rules.add(this);
      methods.extraOptimizations_$eq(ScalaSeq.of(rules));
    }
  }

  /** The plan with what the rule puts in place of its parts. */
  public abstract LogicalPlan answered(LogicalPlan plan);

  /** The plan with answered children; the plan itself if none changes. */
  public LogicalPlan withAnsweredChildren(LogicalPlan plan) {
    ArrayList children = new ArrayList();
    boolean changed = false;
    for (int i = 0; i < plan.children().size(); i++) {
      LogicalPlan child = (LogicalPlan) plan.children().apply(i);
      children.add(answered(child));
      changed |= children.get(i) != child;
    }
    return changed ? (LogicalPlan) plan.withNewChildren(ScalaSeq.of(children)) : plan;
  }
}
