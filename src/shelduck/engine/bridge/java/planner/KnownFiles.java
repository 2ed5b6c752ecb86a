package shelduck.bridge.planner;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap;
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import shelduck.bridge.plans.LakeRows;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.scan.LakeFileIndex;
import shelduck.bridge.scan.MetadataValue;

/** Files of a lake of which the optimizer knows how many rows they have, and what is in their columns. */
public class KnownFiles extends LogicalRelation {
  private final Statistics known;

  /** Spark copies a plan by these, which are its parts and those of {@link #otherCopyArgs}. */
  public KnownFiles(BaseRelation relation, Seq output, Option table, boolean isStreaming, Option stream,
      Statistics known) {
    super(relation, output, table, isStreaming, stream);
    this.known = known;
  }

  public Seq otherCopyArgs() {
    return ScalaSeq.of(Collections.singletonList(known));
  }

  /** The same files, or what they were if the catalog does not know their rows. */
  public static LogicalRelation of(LogicalRelation files) {
    List told = files instanceof KnownFiles ? new ArrayList() : told(files);
    if (told.isEmpty()) {
      return files;
    }
    BigInt rows = BigInt.apply(Long.parseLong(((String[]) told.get(0))[0]));
    HashMap columns = new HashMap();
    for (int i = 1; i < told.size(); i++) {
      columns.put(((String[]) told.get(i))[0], told.get(i));
    }
    ArrayList stats = new ArrayList();
    for (Attribute column : ScalaSeq.list(files.output())) {
      String[] of = (String[]) columns.get(column.name());
      if (of != null) {
        stats.add(new Tuple2(column, column(of, column.dataType())));
      }
    }
    return of(files, statistics(files.output(), rows, stats));
  }

  /** Files of which a query reads so many bytes. */
  public static LogicalRelation ofSize(LogicalRelation files, long bytes) {
    AttributeMap nothing = new AttributeMap(Map$.MODULE$.empty());
    return of(files, new Statistics(BigInt.apply(Math.max(1L, bytes)), Option.empty(), nothing, false));
  }

  private static LogicalRelation of(LogicalRelation files, Statistics known) {
    return new KnownFiles(files.relation(), files.output(), files.catalogTable(), files.isStreaming(),
        files.stream(), known);
  }

  private static List told(LogicalRelation files) {
    try {
      return LakeFileIndex.of(files).statistics();
    } catch (IllegalArgumentException failed) {
      // The query itself says what is wrong, if it needs the catalog.
      return new ArrayList();
    }
  }

  /** Statistics of so many rows with these columns, pairs of an attribute and what is known of it. */
  public static Statistics statistics(Seq output, BigInt rows, List<Tuple2> columns) {
    AttributeMap known = new AttributeMap(Map$.MODULE$.empty());
    for (Tuple2 each : columns) {
      known = known.$plus(each);
    }
    BigInt bytes = EstimationUtils$.MODULE$.getOutputSize(output, rows, known);
    return new Statistics(bytes, Option.apply(rows), known, false);
  }

  /** What is known of a column: distinct values, NULLs, bounds, and lengths of texts. */
  public static ColumnStat stat(Object distinct, Object low, Object high, Object nulls, Object average, Object most) {
    return new ColumnStat(Option.apply((BigInt) distinct), Option.apply(low), Option.apply(high),
        Option.apply((BigInt) nulls), Option.apply(average), Option.apply(most), Option.empty(), 2);
  }

  private static ColumnStat column(String[] told, DataType type) {
    return stat(count(told[1]), bound(told[3], type), bound(told[4], type), count(told[2]),
        length(told[5], type), length(told[6], type));
  }

  private static Long length(String text, DataType type) {
    return text == null ? Long.valueOf(type.defaultSize()) : Long.valueOf(text);
  }

  private static BigInt count(String text) {
    return text == null ? null : BigInt.apply(Long.parseLong(text));
  }

  private static Object bound(String text, DataType type) {
    try {
      return text == null || !MetadataValue.isKnown(type) ? null : MetadataValue.of(text, type);
    } catch (ArithmeticException tooLarge) {
      return null;
    } catch (NumberFormatException infinite) {
      return null;
    }
  }

  public Statistics computeStats() {
    return known;
  }

  /** Spark keeps a plan in place of one that equals it. */
  public boolean canEqual(Object other) {
    return other instanceof KnownFiles;
  }

  public boolean equals(Object other) {
    return other instanceof KnownFiles && super.equals(other);
  }

  /** Rows of a lake that the plan itself has, whose values are counted. */
  public static class KnownRows extends LocalRelation {
    private final Statistics known;

    /** Spark copies a plan by these, which are its parts and those of {@link #otherCopyArgs}. */
    public KnownRows(Seq output, Seq rows, boolean isStreaming, Option stream, Statistics known) {
      super(output, rows, isStreaming, stream);
      this.known = known;
    }

    public Seq otherCopyArgs() {
      return ScalaSeq.of(Collections.singletonList(known));
    }

    public static LogicalPlan of(LocalRelation rows) {
      ArrayList stats = new ArrayList();
      for (int i = 0; i < rows.output().size(); i++) {
        Attribute column = (Attribute) rows.output().apply(i);
        DataType type = column.dataType();
        boolean isText = type instanceof StringType || type instanceof BinaryType;
        if (isText || MetadataValue.isKnown(type)) {
          stats.add(new Tuple2(column, column(rows, i, type, isText)));
        }
      }
      BigInt count = BigInt.apply(rows.data().size());
      return new KnownRows(rows.output(), rows.data(), rows.isStreaming(), rows.stream(),
          KnownFiles.statistics(rows.output(), count, stats));
    }

    private static Object column(LocalRelation rows, int at, DataType type, boolean isText) {
      List<Object> values = LakeRows.values(rows, at);
      HashSet distinct = new HashSet();
      long sum = 0;
      long most = 0;
      for (Object value : values) {
        boolean isBinary = value instanceof byte[];
        Object counted = isBinary ? UTF8String.fromBytes((byte[]) value) : value;
        distinct.add(counted);
        if (isText) {
          UTF8String text = (UTF8String) counted;
          long length = isBinary ? text.numBytes() : text.numChars();
          sum += length;
          most = Math.max(most, length);
        }
      }
      boolean hasEnds = !isText && !values.isEmpty();
      Object low = hasEnds ? Collections.min((List) values) : null;
      Object high = hasEnds ? Collections.max((List) values) : null;
      long texts = values.size();
      BigInt nulls = BigInt.apply(rows.data().size() - texts);
      long size = type.defaultSize();
      Object average = !isText ? (Object) Long.valueOf(size) : texts == 0 ? null : Long.valueOf((sum + texts - 1) / texts);
      Object longest = !isText ? (Object) Long.valueOf(size) : texts == 0 ? null : Long.valueOf(most);
      return KnownFiles.stat(BigInt.apply(distinct.size()), low, high, nulls, average, longest);
    }

    public String nodeName() {
      return "LocalRelation";
    }

    public Statistics computeStats() {
      return known;
    }

    /** Spark keeps a plan in place of one that equals it. */
    public boolean canEqual(Object other) {
      return other instanceof KnownRows;
    }

    public boolean equals(Object other) {
      return other instanceof KnownRows && super.equals(other);
    }
  }

  /**
   * The rows of one table in several places, such as files and the catalog. Spark does not know how
   * many values the parts of a UNION share; those of one table are parts of the same values.
   */
  public static class KnownParts extends Union {
    private transient Statistics known;

    /** Spark copies a plan by these, which are its parts. */
    public KnownParts(Seq children, boolean byName, boolean allowMissingCol) {
      super(children, byName, allowMissingCol);
    }

    /** Whether all parts of a plan are rows of one table, some of which are in files. */
    public static boolean areOf(Union plan) {
      if (plan.byName() || plan.allowMissingCol() || plan instanceof KnownParts) {
        return false;
      }
      Object table = null;
      for (LogicalPlan each : ScalaSeq.list(plan.children())) {
        LogicalPlan at = each;
        while (at.children().size() == 1) {
          at = (LogicalPlan) at.children().apply(0);
        }
        if (at instanceof KnownFiles) {
          Option name = ((HadoopFsRelation) ((KnownFiles) at).relation()).options().get("shelduck.table");
          if (name.isEmpty() || (table != null && !table.equals(name.get()))) {
            return false;
          }
          table = name.get();
        } else if (!(at instanceof KnownFiles.KnownRows)) {
          return false;
        }
      }
      return table != null;
    }

    public synchronized Statistics stats() {
      Statistics apart = super.stats();
      if (known == null) {
        known = apart.rowCount().isEmpty() ? apart : together(apart);
      }
      return known;
    }

    private Statistics together(Statistics apart) {
      ArrayList columns = new ArrayList();
      for (int c = 0; c < output().size(); c++) {
        Attribute column = (Attribute) output().apply(c);
        Object low = null;
        Object high = null;
        boolean bounded = true;
        BigInt most = null;
        BigInt nulls = BigInt.apply(0);
        Object average = null;
        Object longest = null;
        for (LogicalPlan child : ScalaSeq.list(children())) {
          Option found = child.stats().attributeStats().get((Attribute) child.output().apply(c));
          if (found.isDefined()) {
            ColumnStat stat = (ColumnStat) found.get();
            most = (BigInt) larger(most, stat.distinctCount());
            if (stat.distinctCount().isEmpty() || ((BigInt) stat.distinctCount().get()).signum() > 0) {
              bounded &= stat.min().isDefined() && stat.max().isDefined();
              low = better("MIN", low, stat.min());
              high = better("MAX", high, stat.max());
            }
            nulls = stat.nullCount().isEmpty() ? nulls : nulls.$plus((BigInt) stat.nullCount().get());
            average = larger(average, stat.avgLen());
            longest = larger(longest, stat.maxLen());
          }
        }
        if (most != null) {
          columns.add(new Tuple2(column, KnownFiles.stat(most, bounded ? low : null, bounded ? high : null,
              nulls, average, longest)));
        }
      }
      return columns.isEmpty() ? apart
          : KnownFiles.statistics(output(), (BigInt) apart.rowCount().get(), columns);
    }

    private static Object better(String word, Object known, Option other) {
      return other.isEmpty() || (known != null && !MetadataValue.isBetter(word, other.get(), known))
          ? known : other.get();
    }

    private static Object larger(Object known, Option other) {
      return other.isEmpty() || (known != null && ((Comparable) other.get()).compareTo(known) <= 0)
          ? known : other.get();
    }

    public String nodeName() {
      return "Union";
    }

    public Union withNewChildrenInternal(IndexedSeq children) {
      return new KnownParts(children, byName(), allowMissingCol());
    }

    /** Spark keeps a plan in place of one that equals it. */
    public boolean canEqual(Object other) {
      return other instanceof KnownParts;
    }

    public boolean equals(Object other) {
      return other instanceof KnownParts && super.equals(other);
    }
  }
}
