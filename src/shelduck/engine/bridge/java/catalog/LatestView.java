package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.GetViewColumnByNameAndOrdinal;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
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
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.NodeChange;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.CatalogCall;
import shelduck.bridge.python.TextRows;

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
      return ViewTable.of(
          about.identifier(), about.schema(), CatalogCall.request(others), null, null);
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

  /**
   * The plan of a DataFrame over the newest tables of lakes. Spark eliminates this node like any
   * other alias. Its tables are looked up when a query first looks below it: Spark holds a lock when
   * it asks for the plan of a view, and looking up a table runs Python.
   */
  public static class LatestPlan extends SubqueryAlias {
    /** The property of a view that stands for a lake's table: its name as SQL. */
    public static final String TABLE = "view.shelduck.table";
    /** The property with rows of a column's name and its ids; the id of the table has no name. */
    public static final String COLUMNS = "view.shelduck.columns";
    private final SparkSession session;
    private final HashSet needed;
    private final LogicalPlan made;
    private LogicalPlan newest;

    /** {@code needed} are the ids of the columns that the plan {@code made} needs of its tables. */
    public LatestPlan(AliasIdentifier name, LogicalPlan made, SparkSession session, HashSet needed) {
      super(name, made);
      this.session = session;
      this.needed = needed;
      this.made = made;
    }

    /** A plain alias; Spark copies a node by a constructor with its parts. */
    public LatestPlan(AliasIdentifier name, LogicalPlan child) {
      this(name, child, null, null);
    }

    public String nodeName() {
      return "SubqueryAlias";
    }

    /** Spark 4.1 asks while it holds the lock of its views. */
    public boolean resolved() {
      boolean isUnread = session != null && newest == null;
      return isUnread && Thread.holdsLock(session.sessionState().catalog()) || super.resolved();
    }

    public synchronized LogicalPlan child() {
      if (session == null) {
        return made;
      }
      if (newest == null) {
        Tables tables = new Tables();
        LogicalPlan found = (LogicalPlan) made.transformUpWithSubqueries(new NodeChange(tables));
        if (tables.fit) {
          found.setAnalyzed();
        }
        newest = found;
      }
      return newest;
    }

    /** The name of the lake's table that a node reads at the newest snapshot; null for all others. */
    public static String table(Object node) {
      return node instanceof View ? property((View) node, TABLE) : null;
    }

    /** Puts the newest version of each table in the place of the one that was read. */
    private class Tables extends AbstractFunction1 {
      /** Whether Spark need not analyze the plan again, to learn what is wrong or may be NULL. */
      boolean fit = true;

      public Object apply(Object node) {
        if (table(node) == null) {
          return null;
        }
        View was = (View) node;
        String table = table(was);
        LogicalPlan now;
        try {
          now = session.table(table).queryExecution().analyzed();
        } catch (Exception error) {
          fit = false;
          // Spark finds what is wrong once more, and says it when somebody reads the view.
          return session.sessionState().sqlParser().parsePlan("TABLE " + table);
        }
        while (!(now instanceof View)) {
          now = (LogicalPlan) now.children().apply(0);
        }
        LogicalPlan rows = (LogicalPlan) now.children().apply(0);
        Seq<? extends NamedExpression> shown = now.output();
        if (rows instanceof Project) {
          shown = ((Project) rows).projectList();
          rows = (LogicalPlan) rows.children().apply(0);
        }
        ArrayList columns = new ArrayList();
        for (Attribute column : ScalaSeq.list(was.output())) {
          if (needed.contains(column.exprId())) {
            columns.add(isAnother(column.name(), was, (View) now)
                ? misfit(column, column.name() + " as it was", table) : column(column, shown, table));
          }
        }
        Project child = new Project(ScalaSeq.of(columns), rows);
        return (LogicalPlan) now.withNewChildren(ScalaSeq.items(child));
      }

      private Alias column(Attribute was, Seq<? extends NamedExpression> shown, String table) {
        for (NamedExpression now : ScalaSeq.list(shown)) {
          Attribute told = now.toAttribute();
          if (!told.name().equalsIgnoreCase(was.name())) {
            continue;
          }
          if (!DataTypeUtils.sameType(was.dataType(), told.dataType())) {
            return misfit(was, was.name() + " of type " + was.dataType().sql(), table);
          }
          fit = fit && told.nullable() == was.nullable();
          return now instanceof Alias ? again((Alias) now, was)
              : new Alias((Expression) now, was.name(), was.exprId(), was.qualifier(), Option.empty(), ScalaSeq.items());
        }
        return misfit(was, was.name(), table);
      }

      private Alias again(Alias now, Attribute was) {
        return new Alias((Expression) now.children().apply(0), was.name(), was.exprId(), now.qualifier(),
            now.explicitMetadata(), now.nonInheritableMetadataKeys());
      }

      /** What Spark refuses with the error of views whose tables have changed. */
      private Alias misfit(Attribute was, String told, String table) {
        fit = false;
        Expression missing = new GetViewColumnByNameAndOrdinal(identifier().name(), told, 0, 1,
            Option.apply("createOrReplaceTempView of a new DataFrame of " + table));
        return new Alias(missing, was.name(), was.exprId(), was.qualifier(), Option.empty(),
            ScalaSeq.items());
      }
    }

    /** Whether a name means another column of the same table than before. */
    private static boolean isAnother(String name, View was, View now) {
      String before = ids(was, name);
      String after = ids(now, name);
      return before != null && after != null && !before.equals(after)
          && ids(was, "").equals(ids(now, ""));
    }

    private static String ids(View view, String name) {
      String told = property(view, COLUMNS);
      for (String[] row : told == null ? new ArrayList() : TextRows.rows(told)) {
        if (row[0].equalsIgnoreCase(name)) {
          return row[1];
        }
      }
      return null;
    }

    private static String property(View view, String name) {
      return (String) CollectionConverters.asJava(view.desc().properties()).get(name);
    }
  }
}
