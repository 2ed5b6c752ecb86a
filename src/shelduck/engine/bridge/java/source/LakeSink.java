package shelduck.bridge.source;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;
import shelduck.bridge.python.CatalogCall;

/** A table of a lake as the sink of a streaming query: Python writes each batch once. */
public final class LakeSink implements Sink {
  private final CatalogCall call;
  private final String namespace;
  private final String name;
  private final String mode;

  public LakeSink(CatalogCall call, String namespace, String name, String mode) {
    this.call = call;
    this.namespace = namespace;
    this.name = name;
    this.mode = mode;
    // Before the first batch, Python refuses what the table cannot do.
    call.rows(null, "sink", namespace, name, mode, "");
  }

  public void addBatch(long number, Dataset batch) {
    org.apache.spark.sql.classic.Dataset found = (org.apache.spark.sql.classic.Dataset) batch;
    SparkSession session = (SparkSession) found.sparkSession();
    // To write it, the plan must not be one of a stream.
    Dataset rows =
        session.internalCreateDataFrame(found.queryExecution().toRdd(), found.schema(), false);
    call.rows(rows, "sink", namespace, name, mode, Long.toString(number));
  }

  public String toString() {
    return "lake table " + namespace + "." + name;
  }
}
