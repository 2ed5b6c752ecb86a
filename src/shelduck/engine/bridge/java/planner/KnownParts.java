package shelduck.bridge.planner;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.ColumnStat;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import shelduck.bridge.plans.ScalaSeq;

/**
 * The rows of one table in several places, such as files and the catalog. Spark does not know how
 * many values the parts of a UNION share; those of one table are parts of the same values.
 */
public class KnownParts extends Union {
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
      } else if (!(at instanceof KnownRows)) {
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

  public int hashCode() {
    return super.hashCode();
  }
}
