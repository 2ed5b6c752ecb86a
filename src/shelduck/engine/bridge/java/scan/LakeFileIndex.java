package shelduck.bridge.scan;

import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.function.Function;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Predicate;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.NodeChange;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;
import shelduck.bridge.write.SealedFiles;

/**
 * The files of one scan, requested when Spark plans it: {@code lister} gets the pushed filters as
 * SQL text, instants in UTC, and returns the files to keep with their constants. If there is a
 * {@code chooser}, {@code RollupRule} asks it what to read instead.
 */
public class LakeFileIndex implements FileIndex {
  /** The key under which a task finds how many rows a file has according to the catalog. */
  public static final String ROWS = "shelduck.write";
  /** The same for the number of positions in its delete file. */
  public static final String DEAD = "shelduck.dead";
  /** The same for the number of its columns' names among those of the scan. */
  public static final String COLUMNS = "shelduck.columns";
  /** The same for its key, and for that of its delete file; no other file has any. */
  public static final String KEY = "shelduck.key";
  public static final String DELETES_KEY = "shelduck.deletes.key";
  // The first row of a request that asks for measures instead of files.
  private static final String MEASURES = "\\N\n";
  // The whole of a request for what the optimizer wants to know.
  private static final String STATISTICS = "\\N\tstatistics\n";
  // Columns that belong to the scan have names that begin like this.
  private static final String HIDDEN = "__shelduck_";
  private static final long BLOCK = 134217728L;
  // Path, size, rows, positions of the delete file and columns come before the constants.
  private static final int FIRST = 5;
  private static final String[] KNOWN = {ROWS, DEAD, COLUMNS};
  // The rows of encrypted files end with these.
  private static final String[] KEYS = {KEY, DELETES_KEY};
  // Marks of the attributes for parts of _metadata; their bare names may equal columns.
  private static final String[] METADATA = {"__metadata_col", "__file_source_metadata_col",
      "__file_source_constant_metadata_col", "__file_source_generated_metadata_col"};

  private final StructType constants;
  private final String root;
  private final URI home;
  private final long files;
  private final long size;
  private final double share;
  // What was found when a plan was optimized, until its files are listed.
  private String[] early;
  private List<String[]> found;
  private final Function lister;
  private final Function chooser;

  /**
   * {@code root}, which explain shows, and {@code chooser} may be null; {@code home} is the file system of paths without
   * a scheme; {@code files} is negative if it is not known.
   */
  public LakeFileIndex(StructType constants, StructType columns, String root, URI home, long files, long size,
      Function lister, Function chooser) {
    this.constants = constants;
    this.root = root;
    this.home = home;
    this.files = files;
    this.size = size;
    this.share = share(columns, constants);
    this.lister = lister;
    this.chooser = chooser;
  }

  /** Spark takes every row to have 8 bytes more than its columns. */
  private static double share(StructType columns, StructType constants) {
    double hidden = 0;
    for (StructField field : constants.fields()) {
      hidden += field.name().startsWith(HIDDEN) ? field.dataType().defaultSize() : 0;
    }
    double all = 8.0 + columns.defaultSize() + constants.defaultSize();
    return all / (all - hidden);
  }

  public Function chooser() {
    return chooser;
  }

  /** How many files there are before any filter, of {@link #bytes} bytes; negative if it is not known. */
  public long files() {
    return files;
  }

  public Seq listFiles(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    String text = texts((Seq) partitionFilters.concat(dataFilters), false);
    BasePredicate condition = bound(partitionFilters);
    List<String[]> rows = taken(text);
    ArrayList kept = new ArrayList(rows.size());
    for (String[] row : rows) {
      InternalRow values = values(row);
      if (condition.eval(values)) {
        // A file of no bytes would get no task; its content is checked when it is opened.
        long size = Math.max(1L, Long.parseLong(row[1]));
        FileStatus file = new FileStatus(size, false, 1, BLOCK, 0L, path(row[0]));
        kept.add(new PartitionDirectory(
            values, ScalaSeq.items(new FileStatusWithMetadata(file, known(row)))));
      }
    }
    return ScalaSeq.of(kept);
  }

  /** What {@link #sizeInBytes} is of the files that filters leave; they are listed only once for it. */
  public long sizeInBytes(Seq<Expression> filters) {
    ArrayList<Expression> ofPartitions = new ArrayList<Expression>();
    ArrayList<Expression> others = new ArrayList<Expression>();
    for (Expression filter : ScalaSeq.list(filters)) {
      if (filter.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(filter)) {
        (isOfPartitions(filter) ? ofPartitions : others).add(filter);
      }
    }
    Seq<Expression> partitionFilters = ScalaSeq.of(ofPartitions);
    String text = texts((Seq) partitionFilters.concat(ScalaSeq.of(others)), false);
    BasePredicate condition = bound(partitionFilters);
    List<String[]> rows = ask(text);
    long bytes = 0;
    for (String[] row : rows) {
      bytes += condition.eval(values(row)) ? Long.parseLong(row[1]) : 0L;
    }
    synchronized (this) {
      early = lines(text);
      found = rows;
    }
    return (long) (bytes * share);
  }

  private boolean isOfPartitions(Expression filter) {
    Seq<Attribute> columns = filter.references().toSeq();
    for (Attribute each : ScalaSeq.list(columns)) {
      String name = each.name();
      if (name.startsWith(HIDDEN) || !Arrays.asList(constants.fieldNames()).contains(name)) {
        return false;
      }
    }
    return columns.size() > 0;
  }

  private static String[] lines(String text) {
    String[] lines = text.split("\n");
    Arrays.sort(lines);
    return lines;
  }

  /** The rows that were found early for these filters, else what Python says now. */
  private List<String[]> taken(String text) {
    List<String[]> rows = null;
    synchronized (this) {
      if (found != null && Arrays.equals(early, lines(text))) {
        rows = found;
      }
      found = null;
    }
    return rows == null ? ask(text) : rows;
  }

  /** Null if one of the filters says more than its text. */
  public static String allTexts(List<Expression> filters) {
    return texts(ScalaSeq.of(filters), true);
  }

  private static String texts(final Seq<Expression> filters, final boolean whole) {
    // The session's time zone may have changed since the DataFrame was made.
    SQLConf utc = SQLConf.get().clone();
    utc.setConfString("spark.sql.session.timeZone", "UTC");
    return (String) SQLConf.withExistingConf(utc, new AbstractFunction0() {
      public Object apply() {
        StringBuilder text = new StringBuilder();
        for (Expression each : ScalaSeq.list(filters)) {
          String filter = sql(each);
          if (filter != null) {
            text.append(TextRows.encoded(filter)).append('\n');
          } else if (whole) {
            return null;
          }
        }
        return text.toString();
      }
    });
  }

  /** The index of a relation over files of a lake, null for any other plan. */
  public static LakeFileIndex of(LogicalPlan plan) {
    if (!(plan instanceof LogicalRelation)
        || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    Object found = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return found instanceof LakeFileIndex ? (LakeFileIndex) found : null;
  }

  /** The answers of {@code MetadataBranch} for all files, null if the catalog does not know them. */
  public String[] answers(String measures) {
    List<String[]> rows = ask(MEASURES + measures);
    return rows.isEmpty() ? null : (String[]) rows.get(0);
  }

  /**
   * What the catalog knows of all files: a row with how many rows they have, and one for each column
   * with its name, distinct values, NULLs, bounds, and the average and greatest length; empty if nothing.
   */
  public List<String[]> statistics() {
    return ask(STATISTICS);
  }

  private List<String[]> ask(String filters) {
    String answer = (String) lister.apply(filters);
    int end = answer.indexOf('\n');
    if (answer.startsWith("failed")) {
      String[] reason = (String[]) TextRows.rows(answer.substring(end + 1)).get(0);
      // PySpark shows only the message of this class of error.
      throw new IllegalArgumentException("Shelduck could not list the files to read: " + reason[0]);
    }
    return TextRows.rows(answer.substring(end + 1));
  }

  /** Null if the filter says nothing about the columns of the files. */
  private static String sql(Expression filter) {
    for (Attribute column : ScalaSeq.list(filter.references().toSeq())) {
      if (isMetadata(column)) {
        return null;
      }
    }
    Expression bare = (Expression) filter.transform(new NodeChange(new BareNames()));
    Expression plain = (Expression) bare.transformUp(new NodeChange(new CastFields()));
    return hidesCast(plain) ? null : plain.sql();
  }

  /** The text of a cast to a nested type is that of its source, whose fields have other names. */
  private static boolean hidesCast(Expression filter) {
    if (filter instanceof Cast && isNested(filter.dataType())) {
      return true;
    }
    for (Expression each : ScalaSeq.list(filter.children())) {
      if (hidesCast(each)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isNested(DataType type) {
    return type instanceof StructType || type instanceof ArrayType || type instanceof MapType;
  }

  /** Whether it is a part of _metadata and not a column of the files. */
  public static boolean isMetadata(Attribute column) {
    for (String mark : METADATA) {
      if (column.metadata().contains(mark)) {
        return true;
      }
    }
    return false;
  }

  /** Spark does not check filters on constants again: whoever lists the files applies them. */
  private BasePredicate bound(Seq<Expression> filters) {
    Expression all = Literal$.MODULE$.TrueLiteral();
    for (Expression each : ScalaSeq.list(filters)) {
      all = new And(all, each);
    }
    return Predicate.createInterpreted((Expression) all.transform(new NodeChange(new AbstractFunction1() {
      public Object apply(Object node) {
        if (!(node instanceof AttributeReference)) {
          return null;
        }
        int place = constants.fieldIndex(((AttributeReference) node).name());
        return new BoundReference(place, constants.fields()[place].dataType(), true);
      }
    })));
  }

  /** What a task finds of a file. Keys are bytes, because texts of plans and errors show others. */
  private Map known(String[] row) {
    HashMap known = new HashMap();
    for (int i = 0; i < KNOWN.length; i++) {
      if (row[2 + i] != null) {
        known.put(KNOWN[i], Long.valueOf(row[2 + i]));
      }
    }
    for (int i = constants.length() + FIRST; i < row.length; i++) {
      if (row[i] != null) {
        known.put(KEYS[i - constants.length() - FIRST], SealedFiles.key(row[i]));
      }
    }
    return Map$.MODULE$.from(CollectionConverters.asScala(known));
  }

  private InternalRow values(String[] row) {
    StructField[] fields = constants.fields();
    int count = fields.length + FIRST;
    if (row.length != count && row.length != count + KEYS.length) {
      throw new IllegalStateException(
          "a listed file has " + (row.length - FIRST) + " constants instead of " + fields.length);
    }
    Object[] values = new Object[fields.length];
    for (int f = 0; f < fields.length; f++) {
      String text = row[f + FIRST];
      values[f] = text == null ? null : value(text, fields[f].dataType());
    }
    return new GenericInternalRow(values);
  }

  private static Object value(String text, DataType type) {
    if (type instanceof BinaryType) {
      return Base64.getDecoder().decode(text);
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(text);
    }
    return MetadataValue.of(text, type);
  }

  /** Path(String) takes every character as it is: nothing is decoded and no pattern is expanded. */
  private Path path(String text) {
    Path path = new Path(text);
    return path.toUri().getScheme() == null ? path.makeQualified(home, new Path("/")) : path;
  }

  public String[] inputFiles() {
    List<String[]> rows = ask("");
    String[] paths = new String[rows.size()];
    for (int i = 0; i < paths.length; i++) {
      paths[i] = path(((String[]) rows.get(i))[0]).toUri().toString();
    }
    return paths;
  }

  public Seq rootPaths() {
    // With the slash, no colon in it can be the end of a scheme.
    return root == null ? ScalaSeq.items() : ScalaSeq.items(new Path("/" + root));
  }

  public void refresh() {}

  /** How large the files are together. */
  public long bytes() {
    return size;
  }

  /** The size that Spark shares out among the columns: those of the scan itself have no part of it. */
  public long sizeInBytes() {
    return (long) (size * share);
  }

  public StructType partitionSchema() {
    return constants;
  }

  /** Drops the qualifier of every column, so that {@code t.x} can only mean field x of struct t. */
  private static final class BareNames extends AbstractFunction1 {
    public Object apply(Object node) {
      return node instanceof AttributeReference
          ? ((AttributeReference) node).withQualifier(ScalaSeq.items()) : null;
    }
  }

  /**
   * Takes a field before its struct is cast and not afterwards. The result is the same, because
   * structs are cast by position. So {@code cast(s as struct<new>).new} is {@code s.old}, the name in
   * the files.
   */
  private static final class CastFields extends AbstractFunction1 {
    public Object apply(Object node) {
      Object child = node instanceof GetStructField ? ((GetStructField) node).child() : null;
      if (!(child instanceof Cast) || !(((Cast) child).dataType() instanceof StructType)
          || !(((Cast) child).child().dataType() instanceof StructType)) {
        return null;
      }
      GetStructField field = (GetStructField) node;
      Cast cast = (Cast) child;
      Expression before = new GetStructField(cast.child(), field.ordinal(), Option.empty());
      DataType wanted = field.dataType();
      return DataType.equalsIgnoreNullability(before.dataType(), wanted) ? (Object) before
          : cast.copy(before, wanted, cast.timeZoneId(), cast.evalMode());
    }
  }
}
