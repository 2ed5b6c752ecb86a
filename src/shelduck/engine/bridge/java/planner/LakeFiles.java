package shelduck.bridge.planner;

import java.util.LinkedHashMap;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import shelduck.bridge.plans.ScalaSeq;

/**
 * The rows of a scan as they are, with metrics of the files that the snapshot has for the scan, and
 * of those that the query leaves out. Spark's own scan takes no further metrics.
 */
public class LakeFiles extends SparkPlan {
  private final SparkPlan scan;
  private final Long files;
  private final Long bytes;
  private transient Map metrics;

  /** {@code files} and {@code bytes} are those before any filter. */
  public LakeFiles(SparkPlan scan, Long files, Long bytes) {
    this.scan = scan;
    this.files = files;
    this.bytes = bytes;
  }

  public String nodeName() {
    return "LakeFiles";
  }

  /** What EXPLAIN shows after the name. */
  public String argString(int most) {
    return files + (files.longValue() == 1L ? " file, " : " files, ") + bytes + " bytes";
  }

  public synchronized Map metrics() {
    if (metrics == null) {
      LinkedHashMap made = new LinkedHashMap();
      made.put("files", SQLMetrics.createMetric(sparkContext(), "number of files in the snapshot"));
      made.put("bytes",
          SQLMetrics.createSizeMetric(sparkContext(), "size of files in the snapshot", 0L));
      made.put("filesLeftOut", SQLMetrics.createMetric(sparkContext(), "number of files left out"));
      made.put("bytesLeftOut",
          SQLMetrics.createSizeMetric(sparkContext(), "size of files left out", 0L));
      metrics = Map$.MODULE$.from(CollectionConverters.asScala(made));
    }
    return metrics;
  }

  public RDD doExecute() {
    RDD rows = scan.execute();
    tell();
    return rows;
  }

  public RDD doExecuteColumnar() {
    RDD batches = scan.executeColumnar();
    tell();
    return batches;
  }

  /** By now Spark has listed the files, and has applied what it learned from joined tables. */
  private void tell() {
    EvenPartitions.share(((FileSourceScanExec) scan).inputRDD());
    Option filesRead = scan.metrics().get("numFiles");
    Option bytesRead = scan.metrics().get("filesSize");
    if (filesRead.isEmpty() || bytesRead.isEmpty()) {
      return;
    }
    set("files", files.longValue());
    set("bytes", bytes.longValue());
    set("filesLeftOut", files.longValue() - value(filesRead));
    set("bytesLeftOut", bytes.longValue() - value(bytesRead));
    SQLMetrics.postDriverMetricUpdates(sparkContext(),
        sparkContext().getLocalProperty("spark.sql.execution.id"), metrics().values().toSeq());
  }

  /** Janino cannot tell apart the two ways in which SQLMetric itself returns a value. */
  private static long value(Option metric) {
    return ((Long) ((AccumulatorV2) metric.get()).value()).longValue();
  }

  private void set(String name, long value) {
    ((SQLMetric) metrics().apply(name)).set(Math.max(0L, value));
  }

  public boolean supportsColumnar() {
    return scan.supportsColumnar();
  }

  public Option vectorTypes() {
    return scan.vectorTypes();
  }

  public Partitioning outputPartitioning() {
    return scan.outputPartitioning();
  }

  public Seq output() {
    return scan.output();
  }

  public Seq children() {
    return ScalaSeq.items(scan);
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new LakeFiles((SparkPlan) children.apply(0), files, bytes);
  }

  public int productArity() {
    return 3;
  }

  public Object productElement(int at) {
    return at == 0 ? (Object) scan : at == 1 ? files : bytes;
  }

  public boolean canEqual(Object other) {
    return other instanceof LakeFiles;
  }

  public boolean equals(Object other) {
    return other instanceof LakeFiles && scan.equals(((LakeFiles) other).scan);
  }

  public int hashCode() {
    return scan.hashCode();
  }
}
