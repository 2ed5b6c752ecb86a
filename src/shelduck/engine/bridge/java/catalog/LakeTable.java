package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import shelduck.bridge.python.CatalogCall;

/**
 * A table of a lake for writes, which {@code WritesByPlan} passes to Python. It accepts any schema,
 * so that Spark casts, fills and reorders nothing: Python does, by one rule for all writes. A {@code
 * staged} table exists once its changes are committed.
 */
public class LakeTable implements StagedTable {
  private final CatalogCall call;
  private final String namespace;
  private final String name;
  private final StructType schema;
  private final String[] keys;
  private final String staged;

  /** {@code keys} are partition keys; {@code staged} is null for an existing table. */
  public LakeTable(CatalogCall call, String namespace, String name, StructType schema,
      String[] keys, String staged) {
    this.call = call;
    this.namespace = namespace;
    this.name = name;
    this.schema = schema;
    this.keys = keys;
    this.staged = staged;
  }

  public String name() {
    return namespace.replace('\u0001', '.') + "." + name;
  }

  public StructType schema() {
    return schema;
  }

  public Transform[] partitioning() {
    return byValues(keys);
  }

  /** Columns whose values are partition keys. */
  static Transform[] byValues(String[] keys) {
    Transform[] found = new Transform[keys.length];
    for (int i = 0; i < keys.length; i++) {
      found[i] = Expressions.identity(QuotingUtils.quoteIdentifier(keys[i]));
    }
    return found;
  }

  public Set capabilities() {
    return Collections.singleton(TableCapability.ACCEPT_ANY_SCHEMA);
  }

  /** The changes in which it is made; empty for an existing table. */
  public String staged() {
    return staged == null ? "" : staged;
  }

  /** What the session calls the lake. */
  public String catalog() {
    return call.name();
  }

  /** What Python is asked about this table, to which more may be added. */
  public List<String> request(String what, String... more) {
    ArrayList<String> request = new ArrayList<String>(Arrays.asList(what, namespace, name));
    request.addAll(Arrays.asList(more));
    return request;
  }

  /** Asks Python about this table; {@code rows} may be null. */
  public List<String[]> ask(List<String> request, Object rows) {
    return call.rows(rows, (String[]) request.toArray(new String[0]));
  }

  public void commitStagedChanges() {
    end("commit");
  }

  public void abortStagedChanges() {
    end("abort");
  }

  private void end(String how) {
    ask(request(how, staged), null);
  }
}
