package shelduck.bridge.statements;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.streaming.DataStreamReader;
import scala.collection.immutable.Seq;
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

  private ReadsByName(SparkSession session) {
    this.session = session;
  }

  /** What Spark calls for each session. */
  public static final class Maker extends AbstractFunction1 {
    public Object apply(Object session) {
      return new ReadsByName((SparkSession) session);
    }
  }

  public TreeNode apply(TreeNode plan) {
    return Sidecar.isUsed() ? answered((LogicalPlan) plan) : plan;
  }

  private LogicalPlan answered(LogicalPlan plan) {
    if (plan instanceof UnresolvedRelation) {
      UnresolvedRelation relation = (UnresolvedRelation) plan;
      return relation.isStreaming() || hasWish(relation.options().asCaseSensitiveMap())
          ? read(relation) : plan;
    }
    return (LogicalPlan) plan.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        return answered((LogicalPlan) child);
      }
    });
  }

  /** Whether options ask for more than a snapshot or a right, which Spark tells a catalog. */
  private static boolean hasWish(Map<String, String> options) {
    for (String option : options.keySet()) {
      String name = option.toLowerCase(Locale.ROOT);
      if (!name.equals("versionasof") && !name.equals("timestampasof")
          && !name.equalsIgnoreCase(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES())) {
        return true;
      }
    }
    return false;
  }

  private LogicalPlan read(UnresolvedRelation relation) {
    List parts = parts(relation.multipartIdentifier());
    if (parts == null) {
      return relation;
    }
    String lake = (String) parts.get(0);
    String table = QuotingUtils.quoteNameParts(ScalaSeq.of(parts.subList(1, parts.size())));
    Map options = relation.options().asCaseSensitiveMap();
    Dataset found;
    if (relation.isStreaming()) {
      DataStreamReader reader = session.readStream();
      reader.format(FORMAT).options(options).option("catalog", lake);
      found = (Dataset) reader.option("table", table).load();
    } else {
      DataFrameReader reader = session.read();
      reader.format(FORMAT).options(options).option("catalog", lake);
      found = (Dataset) reader.option("table", table).load();
    }
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
