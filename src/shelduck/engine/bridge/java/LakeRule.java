package shelduck.bridge;

import java.util.ArrayList;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/** A rule that the bridge adds to the optimizer of a session. */
public abstract class LakeRule extends Rule {
  /** Adds this rule after the existing ones, unless there is one of its class. */
  public void install(SparkSession session) {
    ExperimentalMethods methods = session.experimental();
    synchronized (methods) {
      methods.extraOptimizations_$eq(ScalaSeq.including(methods.extraOptimizations(), this));
    }
  }

  /** Whether the session lets a rule or strategy work; it does unless the setting says false. */
  public static boolean isOn(String setting) {
    return SQLConf.get().getConfString(setting, "true").equalsIgnoreCase("true");
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
