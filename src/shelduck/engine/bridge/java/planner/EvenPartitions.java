package shelduck.bridge.planner;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.PriorityQueue;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;

/**
 * Shares the files of a scan out evenly among the partitions that Spark has made. Spark fills one
 * after the other and counts each file as some megabytes more, so that after a few small writes one
 * task may get all large files, and the others wait for it.
 */
public class EvenPartitions implements Comparator {
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
      Field files = FilePartition.class.getDeclaredField("files");
      files.setAccessible(true);
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
