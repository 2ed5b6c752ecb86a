package shelduck.bridge;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.commons.lang3.reflect.MethodUtils;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import shelduck.bridge.catalog.LakeTable;
import shelduck.bridge.catalog.LakeView;
import shelduck.bridge.python.CatalogCall;
import shelduck.bridge.python.TextRows;

/** A lake as a catalog of a session; Python answers Spark's requests. */
public class LakeCatalog implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog {
  private static final String NONE = "";
  // Of a writer that looks before its plan runs, which a Connect server does later in the thread.
  private static final ThreadLocal OVERWRITTEN = new ThreadLocal();
  private String name;
  private CatalogCall call;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.call = new CatalogCall(name);
  }

  public String name() {
    return name;
  }

  public String[] defaultNamespace() {
    return new String[] {"main"};
  }

  // Tables

  public Identifier[] listTables(String[] namespace) {
    List<String[]> rows = asked("tables", joined(namespace));
    Identifier[] found = new Identifier[rows.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = Identifier.of(namespace, ((String[]) rows.get(i))[0]);
    }
    return found;
  }

  public boolean tableExists(Identifier table) {
    return call.rows(null, "exists", joined(table.namespace()), table.name()).size() > 0;
  }

  public Table loadTable(Identifier table) {
    return view(table, NONE, NONE);
  }

  public Table loadTable(Identifier table, String version) {
    return view(table, "version", version);
  }

  public Table loadTable(Identifier table, long microseconds) {
    return view(table, "timestamp", Long.toString(microseconds));
  }

  /** A table to write to; only Python knows who may do this. */
  public Table loadTable(Identifier table, Set privileges) {
    // CREATE TABLE asks for the table that it made, and for no privilege.
    if (privileges != null && privileges.contains(TableWritePrivilege.DELETE) && isSaved()) {
      OVERWRITTEN.set(table);
    }
    String namespace = joined(table.namespace());
    String[] found = call.row("schema", namespace, table.name());
    String[] keys = (String[]) Arrays.copyOfRange(found, 1, found.length);
    return new LakeTable(call, namespace, table.name(), schema(found, 0), keys, null);
  }

  public Table createTable(
      Identifier table, StructType schema, Transform[] partitions, Map properties) {
    LakeTable made = staged("create", table, schema, partitions, properties);
    made.commitStagedChanges();
    return loadTable(table, (Set) null);
  }

  public StagedTable stageCreate(
      Identifier table, StructType schema, Transform[] partitions, Map properties) {
    return staged("create", table, schema, partitions, properties);
  }

  public StagedTable stageReplace(
      Identifier table, StructType schema, Transform[] partitions, Map properties) {
    return staged("replace", table, schema, partitions, properties);
  }

  public StagedTable stageCreateOrReplace(
      Identifier table, StructType schema, Transform[] partitions, Map properties) {
    boolean overwrites = isSaved() || table.equals(OVERWRITTEN.get());
    OVERWRITTEN.remove();
    String how = overwrites ? "overwrite" : "create or replace";
    return staged(how, table, schema, partitions, properties);
  }

  /** What Spark's Java API and declarative pipelines change; Python reads ALTER TABLE before. */
  public Table alterTable(Identifier table, TableChange... changes) {
    List<String> request = new ArrayList<String>(
        Arrays.asList("alter", joined(table.namespace()), table.name()));
    for (TableChange change : changes) {
      request.add(told(change));
    }
    call.rows(null, (String[]) request.toArray(new String[0]));
    return loadTable(table, (Set) null);
  }

  public boolean dropTable(Identifier table) {
    return call.rows(null, "drop", joined(table.namespace()), table.name()).size() > 0;
  }

  public void renameTable(Identifier table, Identifier renamed) {
    call.rows(null, "rename", joined(table.namespace()), table.name(),
        joined(renamed.namespace()), renamed.name());
  }

  // Namespaces

  public String[][] listNamespaces() {
    return inside(new String[0]);
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length > 0) {
      loadNamespaceMetadata(namespace);
    }
    return inside(namespace);
  }

  public boolean namespaceExists(String[] namespace) {
    return namespace.length > 0 && asked("schema exists", joined(namespace)).size() > 0;
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
    return new HashMap();
  }

  public void createNamespace(String[] namespace, Map properties) {
    if (properties.containsKey("comment") || properties.containsKey("location")) {
      throw new IllegalArgumentException("Unsupported: schemas of a lake have no comment and no"
          + " location; leave out COMMENT and LOCATION");
    }
    asked("create schema", joined(namespace));
  }

  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw new IllegalArgumentException(
        "Unsupported: schemas of a lake have no properties; leave them out");
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    asked(cascade ? "drop schema cascade" : "drop schema", joined(namespace));
    return true;
  }

  /** Spark adds its own; Python puts the texts of macros in their place before it looks here. */
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  public UnboundFunction loadFunction(Identifier name) throws NoSuchFunctionException {
    throw new NoSuchFunctionException(name);
  }

  // Helpers

  /** The namespaces directly inside one, or those in no other one. */
  private String[][] inside(String[] namespace) {
    List<String[]> rows = asked("schemas", joined(namespace));
    String[][] found = new String[rows.size()][];
    for (int i = 0; i < found.length; i++) {
      found[i] = (String[]) Arrays.copyOf(namespace, namespace.length + 1);
      found[i][namespace.length] = ((String[]) rows.get(i))[0];
    }
    return found;
  }

  private Table view(Identifier table, String how, String when) {
    String namespace = joined(table.namespace());
    String[] found = call.row("load", namespace, table.name(), how, when);
    return LakeView.of(call, table.namespace(), table.name(), found[0], found[1],
        schema(found, 2), how.equals(NONE), found[3]);
  }

  /**
   * Whether saveAsTable asks. In mode overwrite Spark has the plan of CREATE OR REPLACE for it, and
   * nothing else tells them apart.
   */
  private static boolean isSaved() {
    return CatalogCall.isFor(".DataFrameWriter.saveAsTable");
  }

  private LakeTable staged(String how, Identifier table, StructType schema,
      Transform[] partitions, Map properties) {
    StringBuilder keys = new StringBuilder();
    for (int i = 0; i < partitions.length; i++) {
      keys.append(i == 0 ? "" : ", ").append(partitions[i].describe());
    }
    String namespace = joined(table.namespace());
    String made = call.row(CatalogCall.request(
        properties, how, namespace, table.name(), schema.json(), keys.toString()))[0];
    return new LakeTable(call, namespace, table.name(), schema, new String[0], made);
  }

  /** The kind of a change, then names and values of all that it says. */
  private static String told(TableChange change) {
    List<String> found = new ArrayList<String>();
    found.add(change.getClass().getSimpleName());
    try {
      for (Method method : change.getClass().getDeclaredMethods()) {
        Object value = method.getParameterCount() == 0 ? method.invoke(change, new Object[0]) : null;
        if (value != null) {
          found.add(method.getName());
          found.add(text(value));
        }
      }
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
    return TextRows.encoded((String[]) found.toArray(new String[0]));
  }

  private static String text(Object value) throws Exception {
    if (value instanceof DataType) {
      return ((DataType) value).sql();
    }
    if (value instanceof ColumnDefaultValue) {
      // The class that declares it is not public.
      return (String) MethodUtils.invokeMethod(value, true, "getSql");
    }
    return value instanceof String[] ? TextRows.encoded((String[]) value) : value.toString();
  }

  private static StructType schema(String[] row, int place) {
    return (StructType) DataType.fromJson(row[place]);
  }

  private static String joined(String[] namespace) {
    return String.join("\u0001", (CharSequence[]) namespace);
  }

  private List<String[]> asked(String what, String about) {
    return call.rows(null, what, about, NONE);
  }
}
