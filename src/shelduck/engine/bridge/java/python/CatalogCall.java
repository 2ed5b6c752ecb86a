package shelduck.bridge.python;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.QueryExecutionException;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/**
 * A request of a {@code LakeCatalog} or a {@code LakeProvider} to Python: {@code asked} gets rows of text, and a Dataset if
 * rows are written. Python's errors come back as rows and are thrown under Spark's names; errors
 * that Spark itself threw in the meantime are thrown again.
 */
public final class CatalogCall {
  private static final List REPEATABLE = Arrays.asList("load", "schema", "schemas",
      "tables", "keys", "exists", "schema exists", "rows", "columns", "open");
  private static final Pattern CLASS = Pattern.compile("^[A-Z][A-Za-z]+: ");
  // Who makes and changes the tables of a declarative pipeline.
  private static final String DATASETS = "org.apache.spark.sql.pipelines.graph.DatasetManager";
  private final String setting;
  private final String hint;
  private final String name;

  /** For requests of the catalog {@code name}; null is the data source, which has no name. */
  public CatalogCall(String name) {
    this.name = name;
    setting = name == null
        ? "spark.shelduck.source" : "spark.sql.catalog." + name + ".attached";
    hint = name == null
        ? "NotFound: the data source 'shelduck' is not registered in this session; call"
            + " shelduck.register(spark)"
        : "NotFound: the lake '" + name + "' is not attached in this session; call shelduck.attach(spark, '"
            + name + "', ...)";
  }

  /** The name of the catalog; null for the data source. */
  public String name() {
    return name;
  }

  /** Spark keeps a catalog once it is attached; a setting says which Python object to call. */
  private BiFunction asked() {
    Sidecar.renew();
    BiFunction found = known();
    if (found == null && Sidecar.isUsed() && !Sidecar.isPython()) {
      // A session that Python does not know yet, by its configuration or from another session.
      Option active = SparkSession.getActiveSession();
      SparkSession session = (SparkSession) (active.isDefined() ? active : SparkSession.getDefaultSession()).get();
      Sidecar.asked(session, "attach", "", name == null ? Sidecar.lakes(session) : new String[] {name});
      found = known();
    }
    if (found == null) {
      throw new IllegalArgumentException(hint);
    }
    return found;
  }

  private BiFunction known() {
    Object found = FromPython.ASKED.get(SQLConf.get().getConfString(setting, ""));
    Option active = SparkSession.getActiveSession();
    if (found == null && active.isDefined()) {
      // Where Spark analyses for one session and Python asks another one, the settings are the first's.
      found = FromPython.ASKED.get(((SparkSession) active.get()).sessionState().conf().getConfString(setting, ""));
    }
    return (BiFunction) found;
  }

  /** Returns the Dataset of the answer. */
  public Dataset dataset(String... request) {
    return (Dataset) FromPython.GIVEN.remove(row(request)[0]);
  }

  /** Returns the first row of the answer. */
  public String[] row(String... request) {
    return (String[]) rows(null, request).get(0);
  }

  /** A request of some texts, then names and values in turns. */
  public static String[] request(Map<String, String> options, String... what) {
    List<String> request = new ArrayList<String>(Arrays.asList(what));
    addAll(request, options);
    return (String[]) request.toArray(new String[0]);
  }

  /** Adds names and values to a request, in turns. */
  public static void addAll(List<String> request, Map<String, String> options) {
    for (Map.Entry<String, String> option : options.entrySet()) {
      request.add((String) option.getKey());
      request.add((String) option.getValue());
    }
  }

  /**
   * Returns the rows of the answer; {@code data} may be null. Python also learns on which one of
   * its own queries this thread works, if on any, and the branch on which its session works.
   */
  public List<String[]> rows(Object data, String... request) {
    String query = SparkContext.getOrCreate().getLocalProperty("shelduck.query");
    SQLConf conf = SQLConf.get();
    String branch = conf.getConfString("shelduck.branch", conf.getConfString("spark.wap.branch", ""));
    if (!branch.isEmpty() && isFor(DATASETS)) {
      throw new IllegalArgumentException("InvalidRequest: Spark writes the rows of a pipeline in"
          + " another session, without shelduck.branch; write database: " + branch + " into the"
          + " specification of the pipeline instead");
    }
    String who = TextRows.encoded((query == null ? "" : query) + '\u0001' + branch);
    String text = who + '\t' + TextRows.encoded(request) + '\n';
    List<String[]> answer = TextRows.rows(told(text, request[0], data));
    if (!((String[]) answer.get(0))[0].equals("ok")) {
      // Spark's analysis errors are checked exceptions, which not every method declares.
      Platform.throwException(error((String[]) answer.get(0), request));
    }
    return answer.subList(1, answer.size());
  }

  /** Whether a method has called that has this in its name, which begins with that of its class. */
  public static boolean isFor(String name) {
    for (StackTraceElement call : Thread.currentThread().getStackTrace()) {
      if ((call.getClassName() + "." + call.getMethodName()).contains(name)) {
        return true;
      }
    }
    return false;
  }

  private String told(String text, String what, Object data) {
    try {
      return (String) asked().apply(text, data);
    } catch (RuntimeException error) {
      Sidecar.requireRepeatable(error, REPEATABLE.contains(what));
      return (String) asked().apply(text, data);
    }
  }

  private static Throwable error(String[] found, String[] request) {
    // Python makes its error again from the class in front; others read the sentence.
    String told = Sidecar.isUsed() && !Sidecar.isPython() ? CLASS.matcher(found[1]).replaceFirst("") : found[1];
    if (found[0].equals("THROWN")) {
      return (Throwable) FromPython.THROWN.remove(found[1]);
    }
    if (found[0].equals("INCOMPATIBLE_DATA_FOR_TABLE")
        || found[0].endsWith("_NOT_FOUND") && request[1].isEmpty() && request[2].isEmpty()) {
      return new Sidecar.Told(told, Option.apply(found[0]));
    }
    if (found[0].equals("TABLE_OR_VIEW_NOT_FOUND")) {
      return new NoSuchTableException(identifier(request[1], request[2]));
    }
    if (found[0].equals("SCHEMA_NOT_FOUND")) {
      return new NoSuchNamespaceException(request[1].split("\u0001"));
    }
    if (found[0].equals("TABLE_OR_VIEW_ALREADY_EXISTS")) {
      return new TableAlreadyExistsException(identifier(request[1], request[2]));
    }
    if (found[0].equals("SCHEMA_ALREADY_EXISTS")) {
      return new NamespaceAlreadyExistsException(new String[] {request[1]});
    }
    // PySpark shows only the message of either; Spark treats an IllegalStateException as a bug.
    return found[0].equals("FAILED")
        ? new QueryExecutionException(told, null) : new IllegalArgumentException(told);
  }

  private static Identifier identifier(String namespace, String name) {
    return Identifier.of(namespace.split("\u0001"), name);
  }
}
