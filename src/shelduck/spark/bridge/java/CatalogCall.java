package shelduck.bridge;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf;

/**
 * What a {@link LakeCatalog} asks Python for: {@code asked} gets rows of text, and a Dataset where
 * rows are written. Python's errors come back as rows, and are thrown as what Spark calls them.
 */
public final class CatalogCall {
  /** Whom to ask, by token. */
  public static final ConcurrentHashMap ASKED = new ConcurrentHashMap();
  private final String name;

  public CatalogCall(String name) {
    this.name = name;
  }

  /** Spark keeps a catalog that was attached once; whom to ask is told by a setting. */
  private BiFunction asked() {
    String token = SQLConf.get().getConfString("spark.sql.catalog." + name + ".attached", "");
    BiFunction found = (BiFunction) ASKED.get(token);
    if (found == null) {
      throw new IllegalStateException("the lake '" + name + "' is not attached in this session:"
          + " call shelduck.attach(spark, '" + name + "', ...)");
    }
    return found;
  }

  /**
   * Returns the rows of the answer; {@code data} may be null. Python hears too for which query of
   * its own this thread works, if for one.
   */
  public List rows(String[] request, Object data) throws Exception {
    String query = SparkContext.getOrCreate().getLocalProperty("shelduck.query");
    StringBuilder text = new StringBuilder(query == null ? "" : query);
    for (int i = 0; i < request.length; i++) {
      text.append('\t').append(TextRows.encoded(request[i]));
    }
    List answer = TextRows.rows((String) asked().apply(text.append('\n').toString(), data));
    String[] first = (String[]) answer.get(0);
    if (!first[0].equals("ok")) {
      throw error(first, request);
    }
    return answer.subList(1, answer.size());
  }

  private static Exception error(String[] found, String[] request) {
    String condition = found[0];
    if (condition.equals("TABLE_OR_VIEW_NOT_FOUND")) {
      return new NoSuchTableException(identifier(request[1], request[2]));
    }
    if (condition.equals("SCHEMA_NOT_FOUND")) {
      return new NoSuchNamespaceException(new String[] {request[1]});
    }
    if (condition.equals("TABLE_OR_VIEW_ALREADY_EXISTS")) {
      return new TableAlreadyExistsException(identifier(request[1], request[2]));
    }
    if (condition.equals("SCHEMA_ALREADY_EXISTS")) {
      return new NamespaceAlreadyExistsException(new String[] {request[1]});
    }
    // PySpark shows the first of these classes by its message alone.
    return condition.equals("FAILED")
        ? new IllegalStateException(found[1]) : new IllegalArgumentException(found[1]);
  }

  private static Identifier identifier(String namespace, String name) {
    return Identifier.of(namespace.split("\u0001"), name);
  }
}
