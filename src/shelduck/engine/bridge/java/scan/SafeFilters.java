package shelduck.bridge.scan;

import java.util.ArrayList;
import java.util.HashSet;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.IsNotNull;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;

/**
 * The filters by which Parquet's reader may skip row groups and pages. For Spark, -0.0 equals 0.0
 * and NaN is the largest number; dictionaries and Bloom filters follow neither rule, and footers of
 * some writers do not mention NaN.
 */
public final class SafeFilters {
  /** An option of a scan: columns whose footers cannot be trusted, as rows of text. */
  public static final String UNTRUSTED = "shelduck.untrusted";

  private SafeFilters() {}

  public static Seq<Filter> of(Seq<Filter> filters, Map options) {
    HashSet untrusted = new HashSet();
    Option named = options.get(UNTRUSTED);
    if (!named.isEmpty()) {
      for (String[] each : TextRows.rows((String) named.get())) {
        untrusted.add(each[0]);
      }
    }
    ArrayList safe = new ArrayList();
    for (Filter filter : ScalaSeq.list(filters)) {
      if (!names(filter, untrusted) && !hasOddNumber(filter)) {
        safe.add(filter);
      }
    }
    return ScalaSeq.of(safe);
  }

  /**
   * Those that may skip part of a file of ordinary rows. Whoever skips has to number rows, which
   * takes longer than to read those that a mere IS NOT NULL leaves out.
   */
  public static Seq<Filter> selective(Seq<Filter> filters) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < filters.size(); i++) {
      if (!(filters.apply(i) instanceof IsNotNull)) {
        found.add(filters.apply(i));
      }
    }
    return ScalaSeq.of(found);
  }

  private static boolean names(Filter filter, HashSet untrusted) {
    String[][] columns = filter.v2references();
    for (String[] each : columns) {
      if (untrusted.contains(each[0])) {
        return true;
      }
    }
    return false;
  }

  private static boolean hasOddNumber(Object part) {
    if (part instanceof Double || part instanceof Float) {
      double number = ((Number) part).doubleValue();
      return number == 0.0 || Double.isNaN(number);
    }
    if (part instanceof Object[]) {
      Object[] values = (Object[]) part;
      for (int i = 0; i < values.length; i++) {
        if (hasOddNumber(values[i])) {
          return true;
        }
      }
    } else if (part instanceof Filter) {
      Product parts = (Product) part;
      for (int i = 0; i < parts.productArity(); i++) {
        if (hasOddNumber(parts.productElement(i))) {
          return true;
        }
      }
    }
    return false;
  }
}
