package shelduck.bridge.planner;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeMap;
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.DataType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.scan.LakeFileIndex;

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

  public int hashCode() {
    return super.hashCode();
  }
}
