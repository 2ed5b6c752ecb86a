package shelduck.bridge;

import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/**
 * Leaves files where tasks write them. Nobody sees the directory of a write before the catalog names
 * its files, and {@link ReportedWriter} reports those of tasks that succeeded, so nothing has to be
 * moved: on an object store, each move is a copy and several requests.
 */
public class LakeCommitter extends OutputCommitter {
  public void setupJob(JobContext context) {}

  public void setupTask(TaskAttemptContext context) {}

  public boolean needsTaskCommit(TaskAttemptContext context) {
    return false;
  }

  public void commitTask(TaskAttemptContext context) {}

  public void abortTask(TaskAttemptContext context) {}
}
