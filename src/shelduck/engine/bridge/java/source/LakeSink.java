package shelduck.bridge.source;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import scala.jdk.javaapi.CollectionConverters;
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
    ask("", null, Collections.emptyMap());
  }

  public void addBatch(long number, Dataset batch) {
    org.apache.spark.sql.classic.Dataset found = (org.apache.spark.sql.classic.Dataset) batch;
    SparkSession session = (SparkSession) found.sparkSession();
    // To write it, the plan must not be one of a stream.
    Dataset rows =
        session.internalCreateDataFrame(found.queryExecution().toRdd(), found.schema(), false);
    // No catalog is told the options of the writer, and no rule: only the plan of a batch has them.
    Object plan = found.queryExecution().logical();
    ask(Long.toString(number), rows,
        CollectionConverters.asJava(((WriteToMicroBatchDataSourceV1) plan).writeOptions()));
  }

  private void ask(String number, Dataset rows, Map<String, String> options) {
    ArrayList<String> request =
        new ArrayList<String>(Arrays.asList("sink", namespace, name, mode, number));
    CatalogCall.addAll(request, options);
    call.rows(rows, (String[]) request.toArray(new String[0]));
  }

  public String toString() {
    return "lake table " + namespace + "." + name;
  }
}
