package shelduck.bridge.plans;

import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

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
    return (LogicalPlan) plan.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        return answered((LogicalPlan) child);
      }
    });
  }

  /** What is below the projections and filters at the top of a plan. */
  public static LogicalPlan below(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter) {
      at = (LogicalPlan) at.children().apply(0);
    }
    return at;
  }

  /** The column that a projection only renames to one of this id; null if there is none. */
  public static Attribute source(Seq<NamedExpression> made, ExprId id) {
    for (NamedExpression each : ScalaSeq.list(made)) {
      if (each.exprId().equals(id)) {
        Object from = each instanceof Alias ? ((Alias) each).child() : each;
        return from instanceof Attribute ? (Attribute) from : null;
      }
    }
    return null;
  }
}
