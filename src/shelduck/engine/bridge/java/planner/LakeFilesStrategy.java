package shelduck.bridge.planner;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.LakeStrategies;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.scan.LakeFileIndex;

/** Plans scans of files of lakes as Spark does, below {@link LakeFiles}. */
public class LakeFilesStrategy extends SparkStrategy {
  /** The setting of a session that turns the strategy off. */
  public static final String SETTING = "spark.shelduck.fileMetrics";

  public void install(SparkSession session) {
    LakeStrategies.install(session, this);
  }

  public Seq apply(LogicalPlan plan) {
    ArrayList found = new ArrayList();
    LakeFileIndex index = index(plan);
    if (index != null && index.files() >= 0 && LakeRule.isOn(SETTING)) {
      try {
        for (SparkPlan each : ScalaSeq.list(FileSourceStrategy$.MODULE$.apply(plan))) {
          found.add(counted(each, index));
        }
      } catch (LinkageError error) {
        // Another Spark than the one for which it was compiled.
        found.clear();
      }
    }
    // Without a plan of this strategy, Spark asks its own.
    return ScalaSeq.of(found);
  }

  private static LakeFileIndex index(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project || below instanceof Filter) {
      below = (LogicalPlan) below.children().apply(0);
    }
    return LakeFileIndex.of(below);
  }

  private static SparkPlan counted(SparkPlan plan, LakeFileIndex index) {
    if (plan instanceof FileSourceScanExec) {
      return new LakeFiles(plan, Long.valueOf(index.files()), Long.valueOf(index.bytes()));
    }
    ArrayList children = new ArrayList();
    for (int i = 0; i < plan.children().size(); i++) {
      children.add(counted((SparkPlan) plan.children().apply(i), index));
    }
    return (SparkPlan) plan.withNewChildren(ScalaSeq.of(children));
  }
}
