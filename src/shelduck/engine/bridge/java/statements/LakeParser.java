package shelduck.bridge.statements;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Locale;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterable;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction2;
import shelduck.bridge.python.CatalogCall;
import shelduck.bridge.python.Sidecar;

/**
 * The parser of a session: it shows Python the statements that may be about a lake, and leaves all
 * others to the parser that was there before. Spark's interface has other methods in each version.
 */
public final class LakeParser implements InvocationHandler {
  private static final String PLAN = "parsePlan";
  private static final String BOUND = "parsePlanWithParameters";
  // Who reads a file of a declarative pipeline, in which statements describe datasets.
  private static final String PIPELINES = "org.apache.spark.sql.pipelines.graph.SqlGraph";
  private static final Pattern VIEW =
      Pattern.compile("\\s*CREATE\\s+(OR\\s+REPLACE\\s+)?VIEW\\b", Pattern.CASE_INSENSITIVE);
  private final SparkSession session;
  private final ParserInterface others;

  private LakeParser(SparkSession session, ParserInterface others) {
    this.session = session;
    this.others = others;
  }

  /** What Spark calls for each session. */
  public static final class Maker extends AbstractFunction2 {
    public Object apply(Object session, Object others) {
      return Proxy.newProxyInstance(LakeParser.class.getClassLoader(),
          new Class[] {ParserInterface.class},
          new LakeParser((SparkSession) session, (ParserInterface) others));
    }
  }

  public Object invoke(Object self, Method method, Object[] given) throws Throwable {
    String name = method.getName();
    if (given != null && (name.equals(PLAN) || name.equals(BOUND))) {
      LogicalPlan plan = plan((String) given[0], given.length > 1 ? given[1] : null);
      if (plan != null) {
        return plan;
      }
    }
    try {
      return method.invoke(others, given);
    } catch (InvocationTargetException error) {
      throw error.getTargetException();
    }
  }

  /** What Python makes of a text; null if it is none of its business. */
  private LogicalPlan plan(String text, Object parameters) {
    String[] names = named(text + (parameters == null ? "" : parameters));
    if (names.length == 0 || Sidecar.isPython()) {
      return null;
    }
    if (CatalogCall.isFor(PIPELINES)) {
      if (VIEW.matcher(text).lookingAt()) {
        throw new IllegalArgumentException("Spark makes a view of a pipeline in no catalog; write"
            + " CREATE TEMPORARY VIEW, or create the view in lake " + names[0] + " beforehand");
      }
      return null;
    }
    String bound = bound(text, parameters);
    if (bound == null) {
      return null;
    }
    Object found;
    try {
      found = Sidecar.asked(session, "plan", bound, names);
    } catch (Throwable error) {
      // Spark expects none but errors of parsing here.
      return new LakeCommand(new LakeAnswer(error));
    }
    if (found instanceof Dataset) {
      return ((Dataset) found).queryExecution().commandExecuted();
    }
    return found == null ? null : new LakeCommand(new LakeAnswer(session, bound, names));
  }

  /** The lakes of the session that a text may be about. */
  private String[] named(String text) {
    String[] all = Sidecar.isUsed() ? Sidecar.lakes(session) : new String[0];
    if (all.length == 0) {
      return all;
    }
    ArrayList found = new ArrayList();
    String lowered = text.toLowerCase(Locale.ROOT).trim();
    if (lowered.startsWith("set spark.") || lowered.startsWith("set `spark.")) {
      // The settings of a lake name it before it can be reached.
      return new String[0];
    }
    String current = session.sessionState().catalogManager().currentCatalog().name();
    for (int i = 0; i < all.length; i++) {
      if (lowered.contains(all[i].toLowerCase(Locale.ROOT)) || all[i].equalsIgnoreCase(current)) {
        found.add(all[i]);
      }
    }
    return (String[]) found.toArray(new String[0]);
  }

  /** The text with its parameters as literals; null if Spark cannot put them in. */
  private static String bound(String text, Object parameters) {
    if (parameters == null || !hasAny(parameters)) {
      return text;
    }
    try {
      // Older versions of Spark have no such class.
      ClassLoader loader = ParserInterface.class.getClassLoader();
      String place = "org.apache.spark.sql.catalyst.parser.Parameter";
      Method put = loader.loadClass(place + "Handler").getMethod("substituteParameters",
          new Class[] {String.class, loader.loadClass(place + "Context")});
      return (String) ((Tuple2) put.invoke(null, new Object[] {text, parameters}))._1();
    } catch (Exception error) {
      return null;
    }
  }

  private static boolean hasAny(Object parameters) {
    Object first = ((Product) parameters).productElement(0);
    return !(first instanceof Iterable) || !((Iterable) first).isEmpty();
  }

  /** Whether Spark takes a text for a query, which does nothing until somebody wants its rows. */
  public static boolean isQuery(SparkSession session, String text) throws Exception {
    return isQuery((LogicalPlan) session.sessionState().sqlParser().parsePlan(text));
  }

  private static boolean isQuery(LogicalPlan plan) {
    boolean is = !(plan instanceof Command || plan instanceof ParsedStatement
        || plan.getClass().getSimpleName().equals("CompoundBody"));
    Seq children = plan.children();
    for (int i = 0; is && i < children.size(); i++) {
      is = isQuery((LogicalPlan) children.apply(i));
    }
    return is;
  }
}
