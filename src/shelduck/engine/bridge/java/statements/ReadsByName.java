package shelduck.bridge.statements;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.Sidecar;
import shelduck.bridge.source.LakeProvider;

/**
 * Reads of a lake's table by name whose wish Spark does not tell a catalog: those of a stream, and
 * those with options of a reader. {@link LakeProvider} reads them, which gets both.
 */
public final class ReadsByName extends Rule {
  /** By its class, which needs no list of a JAR that may be closed. */
  private static final String FORMAT = LakeProvider.class.getName();
  private final SparkSession session;

  ReadsByName(SparkSession session) {
    this.session = session;
  }

  public TreeNode apply(TreeNode plan) {
    return answered((LogicalPlan) plan);
  }

  private LogicalPlan answered(LogicalPlan plan) {
    if (plan instanceof UnresolvedRelation) {
      final UnresolvedRelation relation = (UnresolvedRelation) plan;
      Map<String, String> options = relation.options();
      // What is written to has an option that says so. Python may plan queries of its own to answer.
      return !relation.isStreaming() && (options.isEmpty()
          || options.containsKey(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES())) ? plan
          : (LogicalPlan) AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(
              new AbstractFunction0() {
                public Object apply() {
                  return read(relation);
                }
              });
    }
    return (LogicalPlan) plan.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        return answered((LogicalPlan) child);
      }
    });
  }

  private LogicalPlan read(UnresolvedRelation relation) {
    List parts = parts(relation.multipartIdentifier());
    if (parts == null) {
      return relation;
    }
    Map options = new HashMap(relation.options().asCaseSensitiveMap());
    options.put("catalog", parts.get(0));
    options.put(
        "table", QuotingUtils.quoteNameParts(ScalaSeq.of(parts.subList(1, parts.size()))));
    Dataset found = relation.isStreaming()
        ? (Dataset) session.readStream().format(FORMAT).options(options).load()
        : LakeProvider.rows(options);
    LogicalPlan plan =
        SubqueryAlias$.MODULE$.apply(ScalaSeq.of(parts), found.queryExecution().analyzed());
    // Columns of the user's frame refer to the relation by its number.
    plan.copyTagsFrom(relation);
    return plan;
  }

  /** The name of a lake, and that of a table with its schemas; null if it is in no lake. */
  private List parts(Seq name) {
    ArrayList<String> found = new ArrayList<String>(ScalaSeq.list(name));
    if (found.size() > 1 && isLake((String) found.get(0))) {
      return found;
    }
    String current = session.sessionState().catalogManager().currentCatalog().name();
    boolean isTemporary = found.size() == 1
        && session.sessionState().catalog().getRawTempView((String) found.get(0)).isDefined();
    if (!isLake(current) || isTemporary) {
      return null;
    }
    if (found.size() == 1) {
      String[] schemas = session.sessionState().catalogManager().currentNamespace();
      for (int i = 0; i < schemas.length; i++) {
        found.add(i, schemas[i]);
      }
    }
    found.add(0, current);
    return found;
  }

  private boolean isLake(String name) {
    for (String each : Sidecar.lakes(session)) {
      if (each.equalsIgnoreCase(name)) {
        return true;
      }
    }
    return false;
  }
}
