package shelduck.bridge.source;

import java.util.Collections;
import java.util.List;
import org.apache.commons.collections4.map.AbstractReferenceMap.ReferenceStrength;
import org.apache.commons.collections4.map.ReferenceIdentityMap;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.streaming.Offset;
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
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.NodeChange;
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
    return new CatalogCall(null).dataset(CatalogCall.request(options, "rows", "", ""));
  }

  public Tuple2 sourceSchema(SQLContext context, Option schema, String provider, Map options) {
    if (schema.isDefined()) {
      throw new IllegalArgumentException(
          "a table of a lake has a schema of its own; leave out .schema(...)");
    }
    String[] found = call.row(CatalogCall.request(given(options), "columns", "", ""));
    MADE.put(options, found[1]);
    return new Tuple2(shortName(), DataType.fromJson(found[0]));
  }

  public Source createSource(
      SQLContext context, String checkpoint, Option schema, String provider, Map options) {
    String made = (String) MADE.get(options);
    if (made == null) {
      throw new IllegalStateException("a frame of a stream begins without its columns");
    }
    String[] found = call.row(CatalogCall.request(given(options), "open", "", "", made));
    return new LakeSource((SparkSession) context.sparkSession(), call, found[0],
        (StructType) DataType.fromJson(found[1]), Integer.parseInt(found[2]));
  }

  /** The options as they were written: the keys of Spark's own map are in lower case. */
  private static java.util.Map given(Map options) {
    return CollectionConverters.asJava(options instanceof CaseInsensitiveMap
        ? ((CaseInsensitiveMap) options).originalMap() : options);
  }

  /** The rows of a Dataset as a relation, which no plan keeps. */
  public static final class LakeScan extends BaseRelation {
    private final SQLContext context;
    private final Dataset rows;

    LakeScan(SQLContext context, Dataset rows) {
      this.context = context;
      this.rows = rows;
    }

    public SQLContext sqlContext() {
      return context;
    }

    public StructType schema() {
      return rows.schema();
    }

    /** A plan with the rows in the place of such relations. */
    public static LogicalPlan shown(LogicalPlan plan) {
      return plan.resolveOperators(new NodeChange(new AbstractFunction1() {
        public Object apply(Object node) {
          Object relation = node instanceof LogicalRelation ? ((LogicalRelation) node).relation() : null;
          return relation instanceof LakeScan
              ? ((LakeScan) relation).rows.queryExecution().analyzed() : null;
        }
      }));
    }
  }

  /** A table of a lake as the source of a streaming query; Python knows where a batch ends. */
  public static class LakeSource implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow {
    private final SparkSession session;
    private final CatalogCall call;
    private final String opened;
    private final StructType schema;
    private final int limit;

    /** {@code opened} is Python's name of the stream; a {@code limit} of 0 allows any number. */
    public LakeSource(
        SparkSession session, CatalogCall call, String opened, StructType schema, int limit) {
      this.session = session;
      this.call = call;
      this.opened = opened;
      this.schema = schema;
      this.limit = limit;
    }

    public StructType schema() {
      return schema;
    }

    public ReadLimit getDefaultReadLimit() {
      return limit > 0 ? ReadLimit.maxFiles(limit) : ReadLimit.allAvailable();
    }

    public void prepareForTriggerAvailableNow() {
      call.rows(null, "stop at newest", "", "", opened);
    }

    public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
        org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit allowed) {
      String most = allowed instanceof ReadMaxFiles
          ? Integer.toString(((ReadMaxFiles) allowed).maxFiles()) : "";
      List<String[]> rows = call.rows(null, "latest", "", "", opened, text(start), most);
      return rows.isEmpty() ? start : new Place(((String[]) rows.get(0))[0]);
    }

    /** Spark asks {@link #latestOffset} instead. */
    public Option getOffset() {
      throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is to be called");
    }

    public Dataset getBatch(Option start, Offset end) {
      String first = start.isDefined() ? ((Offset) start.get()).json() : "";
      Dataset rows = call.dataset("batch", "", "", opened, first, end.json());
      return session.internalCreateDataFrame(rows.queryExecution().toRdd(), schema, true);
    }

    public void stop() {
      call.rows(null, "close", "", "", opened);
    }

    private static String text(org.apache.spark.sql.connector.read.streaming.Offset offset) {
      return offset == null ? "" : offset.json();
    }

    /** How far a streaming query has read a table; only Python understands the text. */
    private static final class Place extends Offset {
      private final String text;

      Place(String text) {
        this.text = text;
      }

      public String json() {
        return text;
      }
    }
  }
}
