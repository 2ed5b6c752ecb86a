package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.util.V2ExpressionSQLBuilder;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.sources.InsertableRelation;
import scala.Option;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.CatalogCall;

/**
 * One write of rows: appended, or replacing all rows or those of a condition. Python gets the rows
 * as the query has them, and fits them to the columns.
 */
public class LakeWrite implements SupportsOverwriteV2, SupportsTruncate, V1Write, InsertableRelation {
  private final CatalogCall call;
  private final String namespace;
  private final String name;
  private final String staged;
  private final Map options;
  private String mode = "append";
  private String condition = "";
  private String matching = "";
  private List fixed = new ArrayList();

  public LakeWrite(
      CatalogCall call, String namespace, String name, String staged, Map options) {
    this.call = call;
    this.namespace = namespace;
    this.name = name;
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
    List<String> request = new ArrayList<String>(Arrays.asList("write", namespace, name, staged,
        mode, condition, matching, Integer.toString(fixed.size())));
    request.addAll(fixed);
    CatalogCall.addAll(request, options);
    call.rows(rows, (String[]) request.toArray(new String[0]));
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
