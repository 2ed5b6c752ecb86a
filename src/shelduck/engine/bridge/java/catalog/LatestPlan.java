package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.GetViewColumnByNameAndOrdinal;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
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
import shelduck.bridge.python.TextRows;

/**
 * The plan of a DataFrame over the newest tables of lakes. Spark eliminates this node like any
 * other alias. Its tables are looked up when a query first looks below it: Spark holds a lock when
 * it asks for the plan of a view, and looking up a table runs Python.
 */
public class LatestPlan extends SubqueryAlias {
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
