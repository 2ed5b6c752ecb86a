package shelduck.bridge.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.ClusterByTransform;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.CatalogCall;

/**
 * A table of a lake for reads: for Spark it is a view of all of a global temporary view, whose plan
 * Python has made.
 */
public final class LakeView {
  private LakeView() {}

  /**
   * {@code hidden} is the name of the view in {@code database}, the database of global views.
   * {@code isNewest}: the table is read at the newest snapshot.
   * {@code ids} has the ids of its columns, as {@link LatestView.LatestPlan} compares them.
   */
  public static Table of(CatalogCall call, String[] namespace, String name, String database,
      String hidden, StructType schema, boolean isNewest, String ids) {
    ArrayList whole = new ArrayList(Arrays.asList(namespace));
    whole.add(0, call.name());
    whole.add(name);
    String schemas = String.join(".", (CharSequence[]) namespace);
    String[] properties = {
      "view.referredTempViewNames", "[[\"" + database + "\",\"" + hidden + "\"]]",
      "view.query.out.numCols", "0", LatestView.LatestPlan.COLUMNS, ids, LatestView.LatestPlan.TABLE,
      isNewest ? QuotingUtils.quoteNameParts(ScalaSeq.of(whole)) : null};
    LakeTable table = new LakeTable(
        call, String.join("\u0001", (CharSequence[]) namespace), name, schema, null, null);
    return new Shown(table, ViewTable.of(
        new TableIdentifier(name, Option.apply(schemas), Option.apply(call.name())), schema,
        properties, "SELECT * FROM `" + database + "`.`" + hidden + "`", ScalaSeq.of(whole)));
  }

  /** How it is read is of no use to people: SHOW TABLE EXTENDED prints all properties. */
  public static final class Shown extends V1Table implements SupportsWrite {
    private final LakeTable table;

    public Shown(LakeTable table, CatalogTable about) {
      super(about);
      this.table = table;
    }

    /** Spark takes a table for the sink of a stream only if it says so. */
    public Set capabilities() {
      return Collections.singleton(TableCapability.STREAMING_WRITE);
    }

    /** What {@code WritesByPlan} puts in its place. */
    public Table sink(String mode) {
      return new LakeSink(table, mode);
    }

    /** Only lists of columns ask, so a read does not wait for the answer. */
    public Transform[] partitioning() {
      List<String[]> rows = table.ask(table.request("keys"), null);
      Transform[] found = new Transform[rows.size()];
      for (int i = 0; i < found.length; i++) {
        String[] row = (String[]) rows.get(i);
        found[i] = row.length == 1 ? LakeTable.byValues(row)[0] : clustered(row);
      }
      return found;
    }

    /** The columns by which files are sorted, behind an empty name. */
    private static Transform clustered(String[] names) {
      ArrayList columns = new ArrayList();
      for (int i = 1; i < names.length; i++) {
        columns.add(Expressions.column(QuotingUtils.quoteIdentifier(names[i])));
      }
      return new ClusterByTransform(ScalaSeq.of(columns));
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      throw new UnsupportedOperationException("a stream into " + v1Table().identifier().table()
          + " of a lake has no trigger of its own; leave out continuous");
    }

    public java.util.Map properties() {
      return new HashMap();
    }
  }

  /** A table of a lake as the sink of a streaming query: Python writes each batch once. */
  public static final class LakeSink implements Sink {
    private final LakeTable table;
    private final String mode;

    public LakeSink(LakeTable table, String mode) {
      this.table = table;
      this.mode = mode;
      // Before the first batch, Python refuses what the table cannot do.
      ask("", null, Collections.emptyMap());
    }

    public void addBatch(long number, org.apache.spark.sql.Dataset batch) {
      Dataset found = (Dataset) batch;
      SparkSession session = (SparkSession) found.sparkSession();
      // To write it, the plan must not be one of a stream.
      Dataset rows =
          session.internalCreateDataFrame(found.queryExecution().toRdd(), found.schema(), false);
      // No catalog is told the options of the writer, and no rule: only the plan of a batch has them.
      Object plan = found.queryExecution().logical();
      ask(Long.toString(number), rows,
          CollectionConverters.asJava(((WriteToMicroBatchDataSourceV1) plan).writeOptions()));
    }

    private void ask(String number, Dataset rows, java.util.Map<String, String> options) {
      List<String> request = table.request("sink", mode, number);
      CatalogCall.addAll(request, options);
      table.ask(request, rows);
    }

    public String toString() {
      return "lake table " + table.name();
    }
  }
}
