package shelduck.bridge.planner;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.PriorityQueue;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import shelduck.bridge.plans.HiddenField;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.LakeStrategies;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.scan.LakeFileIndex;

/** Plans scans of files of lakes as Spark does, below {@link LakeFiles}. */
public class LakeFilesStrategy extends SparkStrategy {
  /** The setting of a session that turns the strategy off. */
  public static final String SETTING = "spark.shelduck.fileMetrics";

  public void install(SparkSession session) {
    LakeStrategies.install(session, this);
  }

  public Seq apply(LogicalPlan plan) {
    ArrayList found = new ArrayList();
    LakeFileIndex index = LakeFileIndex.of(LakeRule.below(plan));
    if (index != null && index.files() >= 0 && LakeRule.isOn(SETTING)) {
      try {
        for (SparkPlan each : ScalaSeq.list(FileSourceStrategy$.MODULE$.apply(plan))) {
          found.add(counted(each, index));
        }
      } catch (LinkageError error) {
        // Another Spark than the one for which it was compiled.
        found.clear();
      }
    }
    // Without a plan of this strategy, Spark asks its own.
    return ScalaSeq.of(found);
  }

  private static SparkPlan counted(SparkPlan plan, LakeFileIndex index) {
    if (plan instanceof FileSourceScanExec) {
      return new LakeFiles(plan, Long.valueOf(index.files()), Long.valueOf(index.bytes()));
    }
    ArrayList children = new ArrayList();
    for (int i = 0; i < plan.children().size(); i++) {
      children.add(counted((SparkPlan) plan.children().apply(i), index));
    }
    return (SparkPlan) plan.withNewChildren(ScalaSeq.of(children));
  }

  /**
   * The rows of a scan as they are, with metrics of the files that the snapshot has for the scan, and
   * of those that the query leaves out. Spark's own scan takes no further metrics.
   */
  public static class LakeFiles extends SparkPlan {
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

    /**
     * Shares the files of a scan out evenly among the partitions that Spark has made. Spark fills one
     * after the other and counts each file as some megabytes more, so that after a few small writes one
     * task may get all large files, and the others wait for it.
     */
    public static class EvenPartitions implements Comparator {
      /** What opening a file takes, as bytes of a file that is read. */
      private static final long OPENING = 512L << 10;

      public int compare(Object one, Object other) {
        return Long.compare(((PartitionedFile) other).length(), ((PartitionedFile) one).length());
      }

      /** Share out the files of a scan that has not begun. */
      public static void share(RDD scan) {
        if (!(scan instanceof FileScanRDD)) {
          return;
        }
        Seq<FilePartition> partitions = ((FileScanRDD) scan).filePartitions();
        ArrayList<PartitionedFile> files = new ArrayList<PartitionedFile>();
        long most = 0;
        for (FilePartition partition : ScalaSeq.list(partitions)) {
          Share own = new Share();
          for (PartitionedFile file : partition.files()) {
            own.add(file);
          }
          files.addAll(own.files);
          most = Math.max(most, own.size);
        }
        PriorityQueue<Share> shares = shares(files, partitions.size());
        long least = 0;
        for (Share share : shares) {
          least = Math.max(least, share.size);
        }
        // Not for less than a tenth.
        if (least * 10 <= most * 9) {
          give(partitions, shares);
        }
      }

      /** The largest file first, each to whoever has the least. */
      private static PriorityQueue<Share> shares(ArrayList<PartitionedFile> files, int count) {
        files.sort(new EvenPartitions());
        PriorityQueue<Share> shares = new PriorityQueue<Share>();
        for (int i = 0; i < count; i++) {
          shares.add(new Share());
        }
        for (PartitionedFile file : files) {
          Share least = (Share) shares.poll();
          least.add(file);
          shares.add(least);
        }
        return shares;
      }

      private static void give(Seq<FilePartition> partitions, PriorityQueue<Share> shares) {
        try {
          Field files = HiddenField.of(FilePartition.class, "files");
          for (FilePartition partition : ScalaSeq.list(partitions)) {
            files.set(partition, ((Share) shares.poll()).files.toArray(new PartitionedFile[0]));
          }
        } catch (ReflectiveOperationException other) {
          // Another Spark: its own shares are right, too.
          return;
        }
      }

      private static final class Share implements Comparable {
        private final ArrayList<PartitionedFile> files = new ArrayList<PartitionedFile>();
        private long size;

        void add(PartitionedFile file) {
          files.add(file);
          size += file.length() + OPENING;
        }

        public int compareTo(Object other) {
          return Long.compare(size, ((Share) other).size);
        }
      }
    }
  }
}
