package shelduck.bridge;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.CostBasedJoinReorder$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;
import shelduck.bridge.planner.KnownFiles;
import shelduck.bridge.plans.LakeRows;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.scan.LakeFileIndex;

/**
 * Tells the cost-based optimizer how many rows tables of lakes have, and what is in their columns, and
 * has it order joins by that. Without {@code spark.sql.cbo.enabled} it tells a plan with joins how large
 * the files are that filters leave of a table too large to be broadcast.
 */
public class StatisticsRule extends LakeRule {
  /** The setting of a session that turns the rule off. */
  public static final String SETTING = "spark.shelduck.statistics";
  /** Of more files the list is not kept, so it would be made twice. */
  private static final long MOST = 10000L;

  public TreeNode apply(TreeNode plan) {
    LogicalPlan at = (LogicalPlan) plan;
    if (!isOn(SETTING)) {
      return plan;
    }
    if (isCostBased()) {
      LogicalPlan found = answered(at);
      return found == plan ? plan : CostBasedJoinReorder$.MODULE$.apply(found);
    }
    boolean mayBroadcast = SQLConf.get().autoBroadcastJoinThreshold() > 0L;
    return mayBroadcast && at.containsPattern(TreePattern$.MODULE$.JOIN()) ? answered(at) : plan;
  }

  private static boolean isCostBased() {
    return SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled();
  }

  public LogicalPlan answered(LogicalPlan plan) {
    return isCostBased() ? known(plan) : filtered(plan);
  }

  /** The plan with the sizes of what filters leave. */
  private LogicalPlan filtered(LogicalPlan plan) {
    if (plan instanceof Filter) {
      LogicalPlan below = (LogicalPlan) plan.children().apply(0);
      LakeFileIndex index = below instanceof KnownFiles ? null : LakeFileIndex.of(below);
      if (index != null) {
        return isWorth(index) ? smaller((Filter) plan, (LogicalRelation) below, index) : plan;
      }
    }
    return withAnsweredChildren(plan);
  }

  private static boolean isWorth(LakeFileIndex index) {
    return index.files() > 1L && index.files() <= MOST
        && index.sizeInBytes() > SQLConf.get().autoBroadcastJoinThreshold();
  }

  private static LogicalPlan smaller(Filter filter, LogicalRelation files, LakeFileIndex index) {
    Seq<Expression> conditions =
        CostBasedJoinReorder$.MODULE$.splitConjunctivePredicates(filter.condition());
    try {
      LogicalPlan known = KnownFiles.ofSize(files, index.sizeInBytes(conditions));
      return (LogicalPlan) filter.withNewChildren(ScalaSeq.items(known));
    } catch (IllegalArgumentException failed) {
      // The query itself says what is wrong.
      return filter;
    }
  }

  /** The plan with all that is known of its tables. */
  private LogicalPlan known(LogicalPlan plan) {
    if (plan instanceof LogicalRelation) {
      return LakeFileIndex.of(plan) == null ? plan : KnownFiles.of((LogicalRelation) plan);
    }
    if (plan instanceof LocalRelation) {
      LocalRelation rows = (LocalRelation) plan;
      return rows.data() instanceof LakeRows && !(plan instanceof KnownFiles.KnownRows)
          ? KnownFiles.KnownRows.of(rows) : plan;
    }
    LogicalPlan found = withAnsweredChildren(plan);
    return found instanceof Union && KnownFiles.KnownParts.areOf((Union) found)
        ? new KnownFiles.KnownParts(found.children(), false, false) : found;
  }
}
