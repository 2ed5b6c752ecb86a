package shelduck.bridge;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.io.InputFile;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedInlineTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases$;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.Tuple3;
import scala.Tuple8;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import shelduck.bridge.catalog.LatestView;
import shelduck.bridge.catalog.ViewTable;
import shelduck.bridge.plans.LakeRows;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;
import shelduck.bridge.scan.LakeFileIndex;
import shelduck.bridge.scan.LakeParquet;
import shelduck.bridge.scan.ReadDictionaries;
import shelduck.bridge.write.ReportedWriters;
import shelduck.bridge.write.SealedFiles;

/** Plans that Python would need many calls to build: each py4j call costs more than its work. */
public final class LakePlans {
  // Spark does not analyze the plan of such a view again.
  private static final String[] ANALYZED = {"view.storingAnalyzedPlan", "true"};

  /**
   * Rows over the files that {@code lister} returns. Schemas are JSON, {@code options} rows of name
   * and value, {@code hidden} a row of columns that are read and not shown. {@code root} and
   * {@code chooser} may be null.
   */
  public Dataset relation(SparkSession session, String constants, String columns, String options,
      String hidden, String root, long files, long size, Function lister, Function chooser) {
    URI home = FileSystem.getDefaultUri(session.sessionState().newHadoopConf());
    StructType listed = schema(constants);
    StructType read = schema(columns);
    HashMap settings = new HashMap();
    for (String[] row : TextRows.rows(options)) {
      settings.put(row[0], row[1]);
    }
    ParquetFileFormat format = settings.containsKey(ReadDictionaries.DictionaryFormat.OPTION)
        ? (ParquetFileFormat) new ReadDictionaries.DictionaryFormat() : new LakeParquet();
    Dataset found = session.baseRelationToDataFrame(new HadoopFsRelation(
        new LakeFileIndex(listed, read, root, home, files, size, lister, chooser), listed, read,
        Option.empty(), format,
        Map$.MODULE$.from(CollectionConverters.asScala(settings)), session));
    List<String[]> names = TextRows.rows(hidden);
    return names.isEmpty() ? found : found.drop((String[]) names.get(0));
  }

  /** Every part is nullable: no file guarantees what the read schema says. */
  private static StructType schema(String json) {
    return ((StructType) DataType.fromJson(json)).asNullable();
  }

  /**
   * The plain columns that a join compares with {@code =}: a row of two names for each pair of the
   * same type, the left one first.
   */
  public String equalColumns(Dataset joined) {
    StringBuilder text = new StringBuilder();
    LogicalPlan plan = joined.queryExecution().analyzed();
    Option keys = plan instanceof Join
        ? ExtractEquiJoinKeys$.MODULE$.unapply((Join) plan) : Option.empty();
    if (keys.isEmpty()) {
      return "";
    }
    Seq lefts = (Seq) ((Tuple8) keys.get())._2();
    Seq rights = (Seq) ((Tuple8) keys.get())._3();
    for (int i = 0; i < lefts.size(); i++) {
      Expression left = (Expression) lefts.apply(i);
      Expression right = (Expression) rights.apply(i);
      if (left instanceof Attribute && right instanceof Attribute
          && left.dataType().equals(right.dataType())) {
        text.append(TextRows.encoded(((Attribute) left).name(), ((Attribute) right).name()))
            .append('\n');
      }
    }
    return text.toString();
  }

  /**
   * A query of views, given by name and rows. They exist only while Spark looks them up, and are
   * registered without the command that makes a view, which takes longer than a small query.
   */
  public Dataset query(SparkSession session, String text, String named, List<Dataset> frames)
      throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    List<String[]> names = TextRows.rows(named);
    try {
      for (int i = 0; i < names.size(); i++) {
        String name = ((String[]) names.get(i))[0];
        LogicalPlan plan = ((Dataset) frames.get(i)).queryExecution().commandExecuted();
        catalog.createTempView(name, new TemporaryViewRelation(
            ViewTable.of(new TableIdentifier(name), plan.schema(), ANALYZED, null, null),
            Option.apply(plan)), false);
      }
      return session.sql(text);
    } finally {
      for (String[] each : names) {
        catalog.dropTempView(each[0]);
      }
    }
  }

  /** Whether the session has a temporary view of this name. */
  public boolean hasView(SparkSession session, String name) {
    return session.sessionState().catalog().getRawTempView(name).isDefined();
  }

  /** Makes a temporary view that Spark has just made read the newest tables of lakes. */
  public void follow(SparkSession session, String name, boolean isGlobal) throws Exception {
    LatestView.follow(session, name, isGlobal);
  }

  /** One row that the plan holds, so nothing is parsed: name, type and value of each column. */
  public Dataset row(SparkSession session, String fields) {
    List<String[]> texts = TextRows.rows(fields);
    StructField[] columns = new StructField[texts.size()];
    Object[] values = new Object[texts.size()];
    for (int i = 0; i < columns.length; i++) {
      String[] text = (String[]) texts.get(i);
      boolean isNumber = text[1].equals("bigint");
      DataType kind = isNumber ? DataTypes.LongType : DataTypes.StringType;
      columns[i] = new StructField(text[0], kind, text[2] == null, Metadata.empty());
      values[i] = isNumber && text[2] != null ? (Object) Long.valueOf(text[2]) : text[2];
    }
    return session.createDataFrame(Collections.singletonList(RowFactory.create(values)),
        new StructType(columns));
  }

  /** Rows that their plan holds, so that they are computed only once; null for others. */
  public Dataset held(Dataset rows) {
    if (!hasItsRows(rows)) {
      // Nothing else is optimized for it.
      return null;
    }
    LogicalPlan plan = rows.queryExecution().optimizedPlan();
    if (!(plan instanceof LocalRelation)) {
      return null;
    }
    // Its columns have lost the names that may precede theirs.
    Seq output = rows.queryExecution().analyzed().output();
    return Dataset.ofRows(session(rows), new LocalRelation(
        output, ((LocalRelation) plan).data(), false, Option.empty()));
  }

  /** {@link #held} rows, with numbers where a BIGINT is NULL: {@code first} is for the first row. */
  public Dataset numbered(Dataset held, String column, long first, long step) {
    LocalRelation plan = (LocalRelation) held.queryExecution().analyzed();
    StructType shape = plan.schema();
    int place = shape.fieldIndex(column);
    ArrayList found = new ArrayList();
    for (int i = 0; i < plan.data().size(); i++) {
      Seq values = ((InternalRow) plan.data().apply(i)).toSeq(shape);
      Object[] row = CollectionConverters.asJava(values).toArray();
      row[place] = row[place] == null ? (Object) Long.valueOf(first + i * step) : row[place];
      found.add(new GenericInternalRow(row));
    }
    return Dataset.ofRows(session(held), new LocalRelation(
        plan.output(), ScalaSeq.of(found), false, Option.empty()));
  }

  /**
   * Rows that are computed now and kept in the executors. Of constants and renamed columns Spark
   * would keep an equation for each, and compare all of them in every later filter and join.
   */
  public Dataset computed(final Dataset rows) {
    // How rows are computed is planned with the settings of the session.
    rows.queryExecution().executedPlan();
    SQLConf quiet = session(rows).sessionState().conf().clone();
    quiet.setConfString("spark.sql.constraintPropagation.enabled", "false");
    return (Dataset) SQLConf.withExistingConf(quiet, new AbstractFunction0() {
      public Object apply() {
        return rows.localCheckpoint(true);
      }
    });
  }

  /** Rows that their plan holds as rows of a lake; others as they are. */
  public Dataset own(Dataset rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    return plan instanceof LocalRelation
        ? Dataset.ofRows(session(rows), LakeRows.of((LocalRelation) plan)) : rows;
  }

  /**
   * The same rows without columns that are renamed to the name that they have. Spark's optimizer
   * removes these too, but first compares each with all others for every filter above them.
   */
  public Dataset unaliased(Dataset rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    return Dataset.ofRows(session(rows), RemoveRedundantAliases$.MODULE$.apply(plan));
  }

  /** The same rows with columns of their own: those of two reads can be told apart in a join. */
  public Dataset again(Dataset rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    if (plan instanceof LocalRelation) {
      LogicalPlan other = ((LocalRelation) plan).newInstance();
      // Nothing in it has to be looked up.
      other.setAnalyzed();
      return Dataset.ofRows(session(rows), other);
    }
    Seq output = plan.output();
    Column[] columns = new Column[output.size()];
    for (int i = 0; i < columns.length; i++) {
      String name = ((Attribute) output.apply(i)).name();
      columns[i] = functions.col(QuotingUtils.quoteIdentifier(name)).as(name);
    }
    return rows.select(columns);
  }

  private static SparkSession session(Dataset rows) {
    return (SparkSession) rows.sparkSession();
  }

  /** What the tasks of a write reported; see {@link ReportedWriters}. */
  public String reports(String name) {
    return ReportedWriters.taken(name);
  }

  /** An encrypted file, for Python; {@code options} are rows of settings. */
  public InputFile sealed(SparkSession session, String path, String key, String options)
      throws IOException {
    Configuration conf = session.sessionState().newHadoopConf();
    for (String[] each : TextRows.rows(options)) {
      conf.set(each[0], each[1]);
    }
    return SealedFiles.opened(new Path(path), SealedFiles.key(key), conf);
  }

  /** See {@link SealedFiles#unbound}. */
  public byte[] unbound(byte[] file, String key) throws IOException {
    return SealedFiles.unbound(file, SealedFiles.key(key));
  }

  /** Whether all rows that the plan reads are in the plan itself. */
  public boolean hasItsRows(Dataset rows) {
    for (LogicalPlan leaf : ScalaSeq.list(rows.queryExecution().analyzed().collectLeaves())) {
      // VALUES that name the current time or user are known when Spark optimizes.
      if (!(leaf instanceof LocalRelation || leaf instanceof OneRowRelation
          || leaf instanceof ResolvedInlineTable)) {
        return false;
      }
    }
    return true;
  }

  /**
   * The filters that choose these rows from one scan of a lake, a row for each; null if something
   * else chooses them too, or a filter has no text.
   */
  public String wholeCondition(Dataset rows) {
    Tuple3 parts = (Tuple3) PhysicalOperation$.MODULE$.unapply(
        rows.queryExecution().optimizedPlan()).get();
    return LakeFileIndex.of((LogicalPlan) parts._3()) == null
        ? null : LakeFileIndex.allTexts(ScalaSeq.list((Seq) parts._2()));
  }

  /**
   * Columns of {@code rows}, each given by its name, its source column, the JSON of the type to
   * cast to and that of its metadata, and whether the source is "sql", or a "star" of many columns. A
   * null source is the next one of {@code made}; a null type is no cast; null metadata keeps the
   * source's.
   */
  public Dataset select(Dataset rows, String named, List<Column> made) {
    return select(rows, named, made, null);
  }

  private static Dataset select(Dataset rows, String named, List<Column> made, ParserInterface parser) {
    List<String[]> texts = TextRows.rows(named);
    Column[] columns = new Column[texts.size()];
    int next = 0;
    for (int i = 0; i < columns.length; i++) {
      String[] text = (String[]) texts.get(i);
      if ("star".equals(text[4])) {
        columns[i] = functions.col(text[1]);
        continue;
      }
      Column column = text[1] == null ? (Column) made.get(next++)
          : text[4] == null ? functions.col(text[1])
          : parser == null ? functions.expr(text[1]) : told(parser, text[1], text[4]);
      if (text[2] != null) {
        column = column.cast(DataType.fromJson(text[2]));
      }
      columns[i] = text[3] == null ? column.as(text[0])
          : column.as(text[0], Metadata.fromJson(text[3]));
    }
    return rows.select(columns);
  }

  /** An expression whose errors say of what it is the text, as those of views do. */
  private static Column told(ParserInterface parser, String text, String what) {
    // Versions of Spark have more or fewer parts behind the text, its kind and its name.
    Constructor origin = Origin.class.getConstructors()[0];
    Object[] parts = new Object[origin.getParameterTypes().length];
    Arrays.fill(parts, Option.empty());
    parts[4] = Option.apply(text);
    parts[5] = Option.apply("shelduck");
    parts[6] = Option.apply(what);
    Origin before = CurrentOrigin.get();
    try {
      CurrentOrigin.set((Origin) origin.newInstance(parts));
      return ExpressionUtils.column(parser.parseExpression(text));
    } catch (Exception error) {
      // Scala declares no errors, so this is called where none may be thrown.
      Platform.throwException(error);
      return null;
    } finally {
      CurrentOrigin.set(before);
    }
  }

  /**
   * As {@link #select}, of rows that have a name. Spark reads texts and analyzes them in a time zone
   * and with ANSI mode, whatever the session has, as it does for views.
   */
  public Dataset selectBound(
      final Dataset rows, final String named, final List<Column> made, String row, String zone) {
    SQLConf settled = session(rows).sessionState().conf().clone();
    settled.setConfString("spark.sql.session.timeZone", zone);
    settled.setConfString("spark.sql.ansi.enabled", "true");
    final Dataset called = rows.as(row);
    return (Dataset) SQLConf.withExistingConf(settled, new AbstractFunction0() {
      public Object apply() {
        return select(called, named, made, session(rows).sessionState().sqlParser());
      }
    });
  }
}
