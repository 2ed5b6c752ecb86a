package shelduck.bridge;

import org.apache.spark.sql.catalyst.optimizer.CostBasedJoinReorder$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Tells the cost-based optimizer how many rows tables of lakes have, and what is in their columns, and
 * has it order joins by that. Without {@code spark.sql.cbo.enabled} nobody is asked.
 */
public class StatisticsRule extends LakeRule {
  public TreeNode apply(TreeNode plan) {
    SQLConf conf = SQLConf.get();
    if (!conf.cboEnabled() && !conf.planStatsEnabled()) {
      return plan;
    }
    LogicalPlan found = answered((LogicalPlan) plan);
    return found == plan ? plan : CostBasedJoinReorder$.MODULE$.apply(found);
  }

  public LogicalPlan answered(LogicalPlan plan) {
    if (plan instanceof LogicalRelation) {
      return LakeFileIndex.of(plan) == null ? plan : KnownFiles.of((LogicalRelation) plan);
    }
    if (plan instanceof LocalRelation) {
      LocalRelation rows = (LocalRelation) plan;
      return rows.data() instanceof LakeRows && !(plan instanceof KnownRows) ? KnownRows.of(rows) : plan;
    }
    LogicalPlan found = withAnsweredChildren(plan);
    return found instanceof Union && KnownParts.areOf((Union) found)
        ? new KnownParts(found.children(), false, false) : found;
  }
}
