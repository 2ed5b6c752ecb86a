package shelduck.bridge.statements;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.unsafe.Platform;
import scala.Product;

/** Spark's CHANGES of a table in a plan. Spark 4.0 and 4.1 have no class of these. */
final class Changes {
  private static final String NODE = "RelationChanges";
  /** The option that asks Python for changes in Spark's form. */
  private static final String ASKED = "sparkChanges";

  private Changes() {}

  static boolean isOf(LogicalPlan plan) {
    return plan.getClass().getSimpleName().equals(NODE)
        && ((Product) plan).productElement(0) instanceof UnresolvedRelation;
  }

  static UnresolvedRelation relation(LogicalPlan plan) {
    return (UnresolvedRelation) ((Product) plan).productElement(0);
  }

  /** The options of its reader, with those of a range that a statement gives in words. */
  static Map options(LogicalPlan plan, UnresolvedRelation relation) {
    Map<String, String> found = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
    found.putAll(relation.options().asCaseSensitiveMap());
    found.put(ASKED, "true");
    Object range = part(((Product) plan).productElement(1), "range");
    String kind = range.getClass().getSimpleName().replace("Range", "");
    if (!kind.equals("Unbounded")) {
      found.put("starting" + kind, text(part(range, "starting" + kind)));
      found.put("startingBoundInclusive", part(range, "startingBoundInclusive").toString());
      Optional end = (Optional) part(range, "ending" + kind);
      if (end.isPresent()) {
        found.put("ending" + kind, text(end.get()));
        found.put("endingBoundInclusive", part(range, "endingBoundInclusive").toString());
      }
    }
    return found;
  }

  /** A version, or a time that Spark counts in microseconds. */
  private static String text(Object end) {
    return end instanceof Long
        ? Instant.EPOCH.plus(((Long) end).longValue(), ChronoUnit.MICROS).toString()
        : end.toString();
  }

  /** A part of what only some versions of Spark have a class of. */
  static Object part(Object of, String name) {
    try {
      return of.getClass().getMethod(name, new Class[0]).invoke(of, new Object[0]);
    } catch (ReflectiveOperationException error) {
      Platform.throwException(error);
      return null;
    }
  }
}
