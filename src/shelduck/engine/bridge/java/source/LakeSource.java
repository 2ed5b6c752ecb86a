package shelduck.bridge.source;

import java.util.List;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import shelduck.bridge.python.CatalogCall;

/** A table of a lake as the source of a streaming query; Python knows where a batch ends. */
public class LakeSource implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow {
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
