package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.CatalogCall;

/** A temporary view of a DataFrame that reads the newest tables of lakes each time. */
public class LatestView extends TemporaryViewRelation {
  // They use columns by name and no others: a column that no other node uses may be gone.
  private static final HashSet CHOOSING = new HashSet(Arrays.asList(
      Project.class, Aggregate.class, Filter.class, Sort.class, GlobalLimit.class,
      LocalLimit.class, Join.class, SubqueryAlias.class, LatestPlan.class, View.class));
  private static final String STORED = "view.storingAnalyzedPlan";
  private final CatalogTable told;
  private final SparkSession session;
  private final String name;
  private final HashSet needed;

  /** {@code told} is what Spark learns about the view, {@code about} what it was made with. */
  public LatestView(CatalogTable about, CatalogTable told, LogicalPlan made, SparkSession session,
      String name, HashSet needed) {
    super(about, Option.apply(made));
    this.told = told;
    this.session = session;
    this.name = name;
    this.needed = needed;
  }

  public CatalogTable tableMeta() {
    return told == null ? super.tableMeta() : told;
  }

  public Option plan() {
    Option made = super.plan();
    return session == null ? made : Option.apply(new LatestPlan(
        new AliasIdentifier(name, ScalaSeq.items()),
        (LogicalPlan) made.get(), session, needed));
  }

  /** Makes a temporary view that Spark has just made follow the tables of lakes in its plan. */
  public static void follow(SparkSession session, String text, boolean isGlobal) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    String name = session.sessionState().sqlParser().parseTableIdentifier(text).table();
    Option found = isGlobal ? catalog.getRawGlobalTempView(name) : catalog.getRawTempView(name);
    if (found.isEmpty()) {
      return;
    }
    TemporaryViewRelation view = (TemporaryViewRelation) found.get();
    LogicalPlan made = (LogicalPlan) view.plan().get();
    HashSet needed = new HashSet();
    if (!collect(made, needed, true)) {
      return;
    }
    Option whole = isGlobal ? catalog.getGlobalTempView(name) : catalog.getTempView(name);
    CatalogTable told = told(view.tableMeta(), (LogicalPlan) whole.get(), session);
    LatestView latest =
        new LatestView(view.tableMeta(), told, made, session, name, needed);
    if (isGlobal) {
      catalog.createGlobalTempView(name, latest, true);
    } else {
      catalog.createTempView(name, latest, true);
    }
  }

  /**
   * Spark 4.1 lets no analyzed plan be one that is not resolved, such as that of a view whose table
   * is gone. Then it must not know that the plan is analyzed.
   */
  private static CatalogTable told(CatalogTable about, LogicalPlan view, SparkSession session)
      throws Exception {
    LogicalPlan missing = session.sessionState().sqlParser().parsePlan("TABLE missing");
    try {
      view.withNewChildren(ScalaSeq.items(missing));
      return about;
    } catch (IllegalArgumentException refused) {
      Map<String, String> others =
          new HashMap<String, String>(CollectionConverters.asJava(about.properties()));
      others.remove(STORED);
      ArrayList<String> kept = new ArrayList<String>();
      CatalogCall.addAll(kept, others);
      return ViewTable.of(
          about.identifier(), about.schema(), (String[]) kept.toArray(new String[0]), null);
    }
  }

  /** Adds the ids of the columns that a plan uses; returns whether it reads a table of a lake. */
  private static boolean collect(LogicalPlan node, HashSet needed, boolean whole) {
    if (whole) {
      add(node.output(), needed);
    }
    if (LatestPlan.table(node) != null) {
      return true;
    }
    add(node.references().toSeq(), needed);
    boolean found = false;
    for (LogicalPlan each : ScalaSeq.list(node.children())) {
      found |= collect(each, needed, !CHOOSING.contains(node.getClass()));
    }
    for (LogicalPlan query : ScalaSeq.list(node.subqueries())) {
      found |= collect(query, needed, true);
    }
    return found;
  }

  private static void add(Seq<Attribute> columns, HashSet<ExprId> needed) {
    for (Attribute column : ScalaSeq.list(columns)) {
      needed.add(column.exprId());
    }
  }
}
