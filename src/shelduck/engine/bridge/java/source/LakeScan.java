package shelduck.bridge.source;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.NodeChange;

/** The rows of a Dataset as a relation, which no plan keeps. */
public final class LakeScan extends BaseRelation {
  private final SQLContext context;
  private final Dataset rows;

  LakeScan(SQLContext context, Dataset rows) {
    this.context = context;
    this.rows = rows;
  }

  public SQLContext sqlContext() {
    return context;
  }

  public StructType schema() {
    return rows.schema();
  }

  /** A plan with the rows in the place of such relations. */
  public static LogicalPlan shown(LogicalPlan plan) {
    return plan.resolveOperators(new NodeChange(new AbstractFunction1() {
      public Object apply(Object node) {
        Object relation = node instanceof LogicalRelation ? ((LogicalRelation) node).relation() : null;
        return relation instanceof LakeScan
            ? ((LakeScan) relation).rows.queryExecution().analyzed() : null;
      }
    }));
  }
}
