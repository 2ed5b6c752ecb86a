package shelduck.bridge.source;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.commons.collections4.map.AbstractReferenceMap.ReferenceStrength;
import org.apache.commons.collections4.map.ReferenceIdentityMap;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;
import shelduck.bridge.python.CatalogCall;

/** The data source {@code shelduck}: a table of a lake, named by options. */
public class LakeProvider implements DataSourceRegister, RelationProvider, StreamSourceProvider {
  /**
   * What the frame of a stream knows of its table, by the options of the frame: Spark makes another
   * provider when a query starts, and passes the same object.
   */
  private static final java.util.Map MADE =
      Collections.synchronizedMap(new ReferenceIdentityMap(ReferenceStrength.WEAK, ReferenceStrength.HARD));
  private final CatalogCall call = new CatalogCall(null);

  public String shortName() {
    return "shelduck";
  }

  public BaseRelation createRelation(SQLContext context, Map options) {
    return new LakeScan(context, rows(given(options)));
  }

  /** The rows that options name. */
  public static Dataset rows(java.util.Map<String, String> options) {
    return new CatalogCall(null).dataset(request(options, "rows", "", ""));
  }

  public Tuple2 sourceSchema(SQLContext context, Option schema, String provider, Map options) {
    if (schema.isDefined()) {
      throw new IllegalArgumentException(
          "a table of a lake has a schema of its own; leave out .schema(...)");
    }
    String[] found = call.row(request(given(options), "columns", "", ""));
    MADE.put(options, found[1]);
    return new Tuple2(shortName(), DataType.fromJson(found[0]));
  }

  public Source createSource(
      SQLContext context, String checkpoint, Option schema, String provider, Map options) {
    String made = (String) MADE.get(options);
    if (made == null) {
      throw new IllegalStateException("a frame of a stream begins without its columns");
    }
    String[] found = call.row(request(given(options), "open", "", "", made));
    return new LakeSource((SparkSession) context.sparkSession(), call, found[0],
        (StructType) DataType.fromJson(found[1]), Integer.parseInt(found[2]));
  }

  private static String[] request(java.util.Map<String, String> options, String... what) {
    List<String> request = new ArrayList<String>(Arrays.asList(what));
    CatalogCall.addAll(request, options);
    return (String[]) request.toArray(new String[0]);
  }

  /** The options as they were written: the keys of Spark's own map are in lower case. */
  private static java.util.Map given(Map options) {
    return CollectionConverters.asJava(options instanceof CaseInsensitiveMap
        ? ((CaseInsensitiveMap) options).originalMap() : options);
  }
}
