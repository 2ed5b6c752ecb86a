package shelduck.bridge.statements;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkThrowable;
import org.apache.spark.SparkThrowableHelper;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SingleStatement;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.unsafe.Platform;
import scala.Product;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.CatalogCall;

/** A script (BEGIN … END) that Spark runs, but for the statements of lakes in it, which Python runs. */
public final class LakeScript {
  /** The statements and queries in a script. */
  public List statements(SparkSession session, String text) throws Exception {
    ArrayList found = new ArrayList();
    collect((LogicalPlan) session.sessionState().sqlParser().parsePlan(text), found);
    return found;
  }

  /**
   * Runs a script and returns the rows of its last query. Python runs the statements of the list,
   * for the lake that is a catalog of this name.
   */
  public Dataset run(SparkSession session, String text, List lakes, String catalog)
      throws Exception {
    Object script = session.sessionState().sqlParser().parsePlan(text);
    script = new Replaced(session, lakes, catalog).apply(script);
    // Spark 4.0 has no such method.
    Class execution = Class.forName("org.apache.spark.sql.scripting.SqlScriptingExecution",
        true, LogicalPlan.class.getClassLoader());
    Class body = Class.forName("org.apache.spark.sql.catalyst.plans.logical.CompoundBody",
        true, LogicalPlan.class.getClassLoader());
    Class map = scala.collection.immutable.Map.class;
    try {
      Object last = execution
          .getMethod("executeSqlScript", new Class[] {SparkSession.class, body, map})
          .invoke(null, new Object[] {session, script, Map$.MODULE$.empty()});
      return Dataset.ofRows(session, (LogicalPlan) last);
    } catch (InvocationTargetException error) {
      Platform.throwException(error.getTargetException());
      return null;
    }
  }

  private static void collect(LogicalPlan plan, List found) {
    if (plan instanceof SingleStatement) {
      found.add(((SingleStatement) plan).getText());
    }
    collectHandlers(plan, found);
    for (LogicalPlan each : ScalaSeq.list(plan.children())) {
      collect(each, found);
    }
  }

  private static final class Replaced extends AbstractFunction1 {
    /** Spark forgets the handlers of a body, and its conditions, where its statements change. */
    private Object withHandlers(LogicalPlan made, LogicalPlan before) {
      ArrayList handlers = new ArrayList();
      for (Object handler : ScalaSeq.list(handlers(before))) {
        handlers.add(copied(handler, 1, apply(Changes.part(handler, "body"))));
      }
      Object whole = copied(before, 0, ((Product) made).productElement(0));
      return copied(whole, 3, ScalaSeq.of(handlers));
    }

    private final SparkSession session;
    private final List lakes;
    private final String catalog;

    Replaced(SparkSession session, List lakes, String catalog) {
      this.session = session;
      this.lakes = lakes;
      this.catalog = catalog;
    }

    public Object apply(Object given) {
      LogicalPlan plan = (LogicalPlan) given;
      String text = plan instanceof SingleStatement ? ((SingleStatement) plan).getText() : null;
      if (text == null || !lakes.contains(text)) {
        LogicalPlan made = (LogicalPlan) plan.mapChildren(this);
        return plan.getClass().getSimpleName().equals("CompoundBody") ? withHandlers(made, plan) : made;
      }
      // A statement tells its place in the script in errors.
      Origin before = CurrentOrigin.get();
      CurrentOrigin.set(plan.origin());
      try {
        return new SingleStatement(new LakeCommand(new Ran(session, text, catalog)));
      } finally {
        CurrentOrigin.set(before);
      }
    }
  }

  private static void collectHandlers(LogicalPlan plan, List found) {
    for (Object handler : ScalaSeq.list(handlers(plan))) {
      collect((LogicalPlan) Changes.part(handler, "body"), found);
    }
  }

  /** Older versions of Spark have none. */
  private static Seq handlers(LogicalPlan plan) {
    boolean has = plan.getClass().getSimpleName().equals("CompoundBody");
    return has ? (Seq) Changes.part(plan, "handlers") : ScalaSeq.items();
  }

  private static Object copied(Object of, int at, Object part) {
    try {
      Product old = (Product) of;
      Object[] parts = new Object[old.productArity()];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = i == at ? part : old.productElement(i);
      }
      return of.getClass().getConstructors()[0].newInstance(parts);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static final class Ran extends LakeAnswer {
    private final String text;
    private final String catalog;

    Ran(SparkSession session, String text, String catalog) {
      super(session, text, new String[0]);
      this.text = text;
      this.catalog = catalog;
    }

    public LakeAnswer planned() {
      // Once for each time that the script comes here.
      forget();
      return this;
    }

    protected Dataset ask() {
      try {
        return new CatalogCall(catalog).dataset("sql", "", "", text);
      } catch (IllegalArgumentException error) {
        throw new Failed(error.getMessage());
      }
    }
  }

  /** An error of Python that handlers of a script know; its message begins with its class. */
  public static final class Failed extends IllegalArgumentException implements SparkThrowable {
    public Failed(String message) {
      super(message);
    }

    public String getErrorClass() {
      return getCondition();
    }

    public String getCondition() {
      String message = getMessage();
      return message.startsWith("TableNotFound") ? "TABLE_OR_VIEW_NOT_FOUND"
          : message.startsWith("ColumnNotFound") ? "UNRESOLVED_COLUMN"
          : message.startsWith("SchemaNotFound") ? "SCHEMA_NOT_FOUND" : "LAKE_FAILED";
    }

    public String getSqlState() {
      String state = SparkThrowableHelper.getSqlState(getCondition());
      return state == null ? "45000" : state;
    }
  }
}
