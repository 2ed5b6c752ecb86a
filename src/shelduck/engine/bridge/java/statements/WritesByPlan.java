package shelduck.bridge.statements;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.catalog.LakeTable;
import shelduck.bridge.catalog.LakeView;
import shelduck.bridge.plans.HiddenField;
import shelduck.bridge.plans.LakeStrategies;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.CatalogCall;
import shelduck.bridge.python.FromPython;
import shelduck.bridge.python.Sidecar;
import shelduck.bridge.source.LakeProvider;

/** Writes into a lake's table: rows, a merge, the batches of a stream. The lake does them. */
public final class WritesByPlan extends Rule {
  private final SparkSession own;
  private boolean isAlone = true;

  private WritesByPlan(SparkSession session) {
    own = session;
  }

  /** Serves calls of sessions that are made with these extensions. */
  public static void inject(SparkSessionExtensions extensions) {
    extensions.injectPlannerStrategy(new AbstractFunction1() {
      public Object apply(Object session) {
        return new LakeCommand.Strategy();
      }
    });
    extensions.injectHintResolutionRule(new AbstractFunction1() {
      public Object apply(Object session) {
        return new ReadsByName((SparkSession) session);
      }
    });
    extensions.injectResolutionRule(new AbstractFunction1() {
      public Object apply(Object session) {
        return new WritesByPlan((SparkSession) session);
      }
    });
  }

  /** Serves calls of a session that exists, of its copies for streams, and of others like it. */
  public static void install(SparkSession session) {
    LakeStrategies.install(session, new LakeCommand.Strategy());
    SparkSessionExtensions extensions = session.extensions();
    synchronized (extensions) {
      Rule writes = new WritesByPlan(session);
      Seq known = extensions.buildResolutionRules(session);
      if (ScalaSeq.including(known, writes) != known) {
        inject(extensions);
      }
      Analyzer analyzer = session.sessionState().analyzer();
      add(analyzer, "hintResolutionRules", new ReadsByName(session));
      add(analyzer, "extendedResolutionRules", writes);
    }
  }

  /** An analyzer keeps the rules with which its session began, each kind in a field. */
  private static void add(Analyzer analyzer, String kind, Rule rule) {
    try {
      Field rules = HiddenField.of(analyzer.getClass(), kind);
      rules.set(analyzer, ScalaSeq.including((Seq) rules.get(analyzer), rule));
    } catch (ReflectiveOperationException error) {
      Platform.throwException(error);
    }
  }

  public TreeNode apply(TreeNode plan) {
    if (isAlone) {
      isAlone = false;
      // With Hive, Spark 4.0 takes no other rule from extensions.
      install(own);
    }
    return replaced((LogicalPlan) plan);
  }

  /** Plans of writes are whole commands: nothing is above them but a union, if a query has several. */
  LogicalPlan replaced(LogicalPlan plan) {
    if (plan instanceof Union) {
      return (LogicalPlan) plan.mapChildren(new AbstractFunction1() {
        public Object apply(Object child) {
          return replaced((LogicalPlan) child);
        }
      });
    }
    if (plan instanceof V2WriteCommand) {
      return written(plan, (V2WriteCommand) plan);
    }
    if (plan instanceof MergeIntoTable) {
      return merged((MergeIntoTable) plan);
    }
    return plan instanceof WriteToStream ? streamed((WriteToStream) plan)
        : LakeProvider.LakeScan.shown(plan);
  }

  /**
   * Rows that are appended, or replace all rows, those of their partitions or those of a condition.
   * Python gets the rows as the query has them, and fits them to the columns.
   */
  private LogicalPlan written(LogicalPlan plan, V2WriteCommand write) {
    LakeTable table = table(write.table());
    if (table == null || !plan.resolved()) {
      return LakeProvider.LakeScan.shown(plan);
    }
    String mode = "append";
    String condition = "";
    scala.collection.immutable.Map options;
    List<String> fixed = new ArrayList<String>();
    if (write instanceof OverwritePartitionsDynamic) {
      mode = "overwrite partitions";
      options = ((OverwritePartitionsDynamic) write).writeOptions();
    } else {
      fixed = fixed(write.query());
      if (write instanceof OverwriteByExpression) {
        Expression replaced = ((OverwriteByExpression) write).deleteExpr();
        mode = replaced.equals(Literal.TrueLiteral()) ? "overwrite" : "replace";
        condition = mode.equals("replace") ? text(replaced) : "";
        options = ((OverwriteByExpression) write).writeOptions();
      } else {
        options = ((AppendData) write).writeOptions();
      }
    }
    List<String> request = table.request("write", table.staged(), mode, condition,
        write.isByName() ? "by name" : "by position", Integer.toString(fixed.size()));
    request.addAll(fixed);
    // A statement may give options to the table.
    Map all = new HashMap(((DataSourceV2Relation) write.table()).options().asCaseSensitiveMap());
    all.putAll(CollectionConverters.asJava(options));
    CatalogCall.addAll(request, all);
    return written(table, request, write.query(), "", Collections.emptyList());
  }

  /** A condition of rows that are replaced; it holds for each of them, whenever it is asked. */
  private static String text(Expression condition) {
    if (!condition.deterministic() || condition.containsPattern(TreePattern.PYTHON_UDF())
        || condition.containsPattern(TreePattern.SCALA_UDF())) {
      throw new IllegalArgumentException("the condition of overwrite() must be SQL over the columns of"
          + " the table, without random values and functions of your own, not " + condition.sql());
    }
    return condition.sql();
  }

  /** The names of columns to which Spark adds a value of the PARTITION clause, each before its text. */
  private static List<String> fixed(LogicalPlan query) {
    ArrayList<String> found = new ArrayList<String>();
    Seq columns = query instanceof Project ? ((Project) query).projectList() : ScalaSeq.of(found);
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

  private LogicalPlan merged(MergeIntoTable plan) {
    LakeTable table = table(plan.targetTable());
    if (table == null || !plan.sourceTable().resolved()) {
      return plan;
    }
    ArrayList<Column> columns = new ArrayList<Column>();
    columns.add(column(plan.mergeCondition(), plan));
    String token = UUID.randomUUID().toString();
    List<String> request = table.request(
        "merge", table.catalog(), token, plan.withSchemaEvolution() ? "evolves" : "");
    add("MATCHED", plan.matchedActions(), plan, request, columns);
    add("NOT_MATCHED", plan.notMatchedActions(), plan, request, columns);
    add("NOT_MATCHED_BY_SOURCE", plan.notMatchedBySourceActions(), plan, request, columns);
    return written(table, request, plan.sourceTable(), token, columns);
  }

  /**
   * Adds clauses: when, whether on a condition, what is done, and the columns that are set, or that
   * nothing says which.
   */
  private static void add(
      String when, Seq<MergeAction> actions, MergeIntoTable plan, List<String> request,
      List<Column> columns) {
    for (MergeAction action : ScalaSeq.list(actions)) {
      Option condition = action.condition();
      if (condition.isDefined()) {
        columns.add(column((Expression) condition.get(), plan));
      }
      Seq<Assignment> set = action instanceof UpdateAction ? ((UpdateAction) action).assignments()
          : action instanceof InsertAction ? ((InsertAction) action).assignments() : null;
      String verb = action.getClass().getSimpleName();
      request.add(when);
      request.add(condition.isDefined() ? "on" : "");
      request.add(verb.startsWith("Update") ? "UPDATE"
          : verb.startsWith("Insert") ? "INSERT" : "DELETE");
      request.add(set == null ? "*" : Integer.toString(set.size()));
      for (int j = 0; set != null && j < set.size(); j++) {
        Assignment one = (Assignment) set.apply(j);
        request.add(one.key().sql());
        columns.add(column(one.value(), plan));
      }
    }
  }

  private static Column column(Expression given, MergeIntoTable plan) {
    return ExpressionUtils.column(named(given, plan));
  }

  /**
   * An expression whose columns are known without the plan: clients of a Connect server give the
   * number of a frame with {@code df.id}.
   */
  private static Expression named(Expression given, final MergeIntoTable plan) {
    Option number = given.getTagValue(LogicalPlan$.MODULE$.PLAN_ID_TAG());
    if (given instanceof UnresolvedAttribute && number.isDefined()) {
      return column(((UnresolvedAttribute) given).nameParts(), number.get(), plan);
    }
    return (Expression) given.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        return named((Expression) child, plan);
      }
    });
  }

  /** The column of a frame: one that the source is made of, or else the table itself. */
  private static Expression column(Seq<String> name, Object number, MergeIntoTable plan) {
    LogicalPlan frame = numbered(plan.sourceTable(), number);
    if (frame != null) {
      Option found = frame.resolve(name, SQLConf.get().resolver());
      return found.isDefined() ? (Expression) found.get() : new UnresolvedAttribute(name);
    }
    ArrayList<String> parts = new ArrayList<String>();
    if (plan.targetTable() instanceof SubqueryAlias) {
      AliasIdentifier table = ((SubqueryAlias) plan.targetTable()).identifier();
      parts.addAll(ScalaSeq.list(table.qualifier()));
      parts.add(table.name());
    }
    parts.addAll(ScalaSeq.list(name));
    return new UnresolvedAttribute(ScalaSeq.of(parts));
  }

  /** The part of a plan that is the frame of a number; null if none is. */
  private static LogicalPlan numbered(LogicalPlan plan, Object number) {
    Option own = plan.getTagValue(LogicalPlan$.MODULE$.PLAN_ID_TAG());
    if (own.isDefined() && own.get().equals(number)) {
      return plan;
    }
    LogicalPlan found = null;
    for (int i = 0; found == null && i < plan.children().size(); i++) {
      found = numbered((LogicalPlan) plan.children().apply(i), number);
    }
    return found;
  }

  private static LogicalPlan streamed(WriteToStream plan) {
    if (!(plan.sink() instanceof LakeView.Shown)) {
      return plan;
    }
    Object[] parts = new Object[plan.productArity()];
    for (int i = 0; i < parts.length; i++) {
      Object part = plan.productElement(i);
      parts[i] = part == plan.sink()
          ? ((LakeView.Shown) part).sink(plan.outputMode().toString()) : part;
    }
    return (LogicalPlan) plan.makeCopy(parts);
  }

  /** The table of a lake to which rows go; null for others. */
  private static LakeTable table(Object plan) {
    Object found = plan instanceof SubqueryAlias ? ((SubqueryAlias) plan).child() : plan;
    Object table = found instanceof DataSourceV2Relation
        ? ((DataSourceV2Relation) found).table() : null;
    return table instanceof LakeTable ? (LakeTable) table : null;
  }

  /** Such a write, which happens when its plan is executed. */
  private LogicalPlan written(final LakeTable table, final List<String> request,
      final LogicalPlan rows, final String token, final List<Column> columns) {
    return new LakeCommand(new LakeAnswer(own, table.name(), new String[0]) {
      protected Dataset ask() {
        FromPython.COLUMNS.put(token, columns);
        try {
          table.ask(request, Dataset.ofRows(own, rows));
        } finally {
          FromPython.COLUMNS.remove(token);
        }
        return null;
      }
    });
  }

  /**
   * Reads of a lake's table by name whose wish Spark does not tell a catalog: those of a stream,
   * those with options of a reader, and CHANGES. {@link LakeProvider} reads them, which gets all.
   */
  public static final class ReadsByName extends Rule {
    /** By its class, which needs no list of a JAR that may be closed. */
    private static final String FORMAT = LakeProvider.class.getName();
    private final SparkSession session;

    ReadsByName(SparkSession session) {
      this.session = session;
    }

    public TreeNode apply(TreeNode plan) {
      return answered((LogicalPlan) plan);
    }

    private LogicalPlan answered(LogicalPlan plan) {
      if (plan instanceof UnresolvedRelation) {
        UnresolvedRelation relation = (UnresolvedRelation) plan;
        Map<String, String> options = relation.options();
        // What is written to has an option that says so.
        return !relation.isStreaming() && (options.isEmpty()
            || options.containsKey(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES())) ? plan
            : read(plan, relation, new HashMap(relation.options().asCaseSensitiveMap()));
      }
      if (Changes.isOf(plan)) {
        UnresolvedRelation relation = Changes.relation(plan);
        return read(plan, relation, Changes.options(plan, relation));
      }
      return (LogicalPlan) plan.mapChildren(new AbstractFunction1() {
        public Object apply(Object child) {
          return answered((LogicalPlan) child);
        }
      });
    }

    /** What a table is read as; the plan itself if it is in no lake. */
    private LogicalPlan read(
        LogicalPlan plan, final UnresolvedRelation relation, final Map options) {
      final List parts = parts(relation.multipartIdentifier());
      // Python may plan queries of its own to answer.
      return parts == null ? plan
          : (LogicalPlan) AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(
              new AbstractFunction0() {
                public Object apply() {
                  return read(relation, parts, options);
                }
              });
    }

    private LogicalPlan read(UnresolvedRelation relation, List parts, Map options) {
      options.put("catalog", parts.get(0));
      options.put(
          "table", QuotingUtils.quoteNameParts(ScalaSeq.of(parts.subList(1, parts.size()))));
      Dataset found = relation.isStreaming()
          ? (Dataset) session.readStream().format(FORMAT).options(options).load()
          : LakeProvider.rows(options);
      LogicalPlan plan =
          SubqueryAlias$.MODULE$.apply(ScalaSeq.of(parts), found.queryExecution().analyzed());
      // Columns of the user's frame refer to the relation by its number.
      plan.copyTagsFrom(relation);
      return plan;
    }

    /** The name of a lake, and that of a table with its schemas; null if it is in no lake. */
    private List parts(Seq name) {
      ArrayList<String> found = new ArrayList<String>(ScalaSeq.list(name));
      if (found.size() > 1 && isLake((String) found.get(0))) {
        return found;
      }
      String current = session.sessionState().catalogManager().currentCatalog().name();
      boolean isTemporary = found.size() == 1
          && session.sessionState().catalog().getRawTempView((String) found.get(0)).isDefined();
      if (!isLake(current) || isTemporary) {
        return null;
      }
      if (found.size() == 1) {
        String[] schemas = session.sessionState().catalogManager().currentNamespace();
        for (int i = 0; i < schemas.length; i++) {
          found.add(i, schemas[i]);
        }
      }
      found.add(0, current);
      return found;
    }

    private boolean isLake(String name) {
      for (String each : Sidecar.lakes(session)) {
        if (each.equalsIgnoreCase(name)) {
          return true;
        }
      }
      return false;
    }
  }
}
