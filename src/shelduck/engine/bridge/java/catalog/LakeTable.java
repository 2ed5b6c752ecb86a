package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.util.V2ExpressionSQLBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.CatalogCall;

/**
 * A table of a lake for writes: all rows are passed to Python as one Dataset. It accepts any schema,
 * so that Spark casts, fills and reorders nothing: Python does, by one rule for all writes. A {@code
 * staged} table exists once its changes are committed.
 */
public class LakeTable implements SupportsWrite, StagedTable {
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
    return new HashSet(Arrays.asList(TableCapability.V1_BATCH_WRITE,
        TableCapability.ACCEPT_ANY_SCHEMA, TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER));
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new LakeWrite(
        this, staged == null ? "" : staged, info.options().asCaseSensitiveMap());
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

  /**
   * One write of rows: appended, or replacing all rows or those of a condition. Python gets the rows
   * as the query has them, and fits them to the columns.
   */
  public static class LakeWrite implements SupportsOverwriteV2, SupportsTruncate, V1Write, InsertableRelation {
    private final LakeTable table;
    private final String staged;
    private final Map options;
    private String mode = "append";
    private String condition = "";
    private String matching = "";
    private List fixed = new ArrayList();

    public LakeWrite(LakeTable table, String staged, Map options) {
      this.table = table;
      this.staged = staged;
      this.options = options;
    }

    /**
     * Says whether columns go by name or by position, and the texts that a PARTITION clause gives, each
     * behind the name of its column; see {@link LakeWriteStrategy}.
     */
    public void match(boolean byName, List fixed) {
      matching = byName ? "by name" : "by position";
      this.fixed = fixed;
    }

    public WriteBuilder truncate() {
      mode = "overwrite";
      return this;
    }

    public boolean canOverwrite(Predicate[] predicates) {
      return true;
    }

    public WriteBuilder overwrite(Predicate[] predicates) {
      mode = "replace";
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < predicates.length; i++) {
        String part = new ConditionText().build(predicates[i]);
        text.append(i == 0 ? "(" : " AND (").append(part).append(')');
      }
      condition = predicates.length == 0 ? "true" : text.toString();
      return this;
    }

    public Write build() {
      return this;
    }

    public InsertableRelation toInsertableRelation() {
      return this;
    }

    public void insert(Dataset rows, boolean overwrite) {
      List<String> request = table.request(
          "write", staged, mode, condition, matching, Integer.toString(fixed.size()));
      request.addAll(fixed);
      CatalogCall.addAll(request, options);
      table.ask(request, rows);
    }

    /** Conditions as text that Spark can parse again: its own builder writes for other databases. */
    private static final class ConditionText extends V2ExpressionSQLBuilder {
      protected String visitLiteral(org.apache.spark.sql.connector.expressions.Literal literal) {
        return new Literal(literal.value(), literal.dataType()).sql();
      }

      protected String visitStartsWith(String text, String part) {
        return "startswith(" + text + ", " + part + ")";
      }

      protected String visitEndsWith(String text, String part) {
        return "endswith(" + text + ", " + part + ")";
      }

      protected String visitContains(String text, String part) {
        return "contains(" + text + ", " + part + ")";
      }
    }

    /**
     * Tells a {@link LakeWrite} what only Spark's plan knows, and leaves the planning to Spark: whether
     * rows go by name or by position, and which texts Spark casts for the PARTITION clause.
     */
    public static class LakeWriteStrategy extends SparkStrategy {
      public Seq apply(LogicalPlan plan) {
        try {
          tell(plan);
        } catch (LinkageError error) {
          // Another Spark than the one for which it was compiled. The write, untold, is refused.
        }
        return ScalaSeq.items();
      }

      private static void tell(LogicalPlan plan) {
        if (plan instanceof AppendData) {
          AppendData append = (AppendData) plan;
          tell(append.write(), append.isByName(), append.analyzedQuery(), append.query());
        } else if (plan instanceof OverwriteByExpression) {
          OverwriteByExpression overwrite = (OverwriteByExpression) plan;
          tell(overwrite.write(), overwrite.isByName(), overwrite.analyzedQuery(), overwrite.query());
        }
      }

      private static void tell(Option write, boolean byName, Option analyzed, LogicalPlan query) {
        if (write.isDefined() && write.get() instanceof LakeWrite) {
          Object plan = analyzed.isDefined() ? analyzed.get() : query;
          ((LakeWrite) write.get()).match(byName, fixed(plan));
        }
      }

      /** The names of columns to which Spark adds a value of the PARTITION clause, each before its text. */
      private static List fixed(Object plan) {
        ArrayList found = new ArrayList();
        Seq columns = plan instanceof Project ? ((Project) plan).projectList() : ScalaSeq.of(found);
        for (Object column : ScalaSeq.list(columns)) {
          Object cast = column instanceof Alias ? ((Alias) column).child() : null;
          if (cast instanceof Cast && ((Cast) cast).child() instanceof Literal
              && ((Cast) cast).getTagValue(Cast.BY_TABLE_INSERTION()).isDefined()) {
            Object text = ((Literal) ((Cast) cast).child()).value();
            if (text != null) {
              found.add(((Alias) column).name());
              found.add(text.toString());
            }
          }
        }
        return found;
      }
    }
  }
}
