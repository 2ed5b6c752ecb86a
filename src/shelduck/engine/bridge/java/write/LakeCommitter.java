package shelduck.bridge.write;

import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.OutputCommitter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/**
 * Leaves files where tasks write them. Nobody sees them before the catalog names them, and
 * {@link ReportedWriter} reports those of tasks that succeeded, so nothing has to be moved: on an
 * object store, each move is a copy and several requests.
 */
public class LakeCommitter extends OutputCommitter {
  public void setupJob(JobContext context) {}

  public void setupTask(TaskAttemptContext context) {}

  /**
   * The driver is asked whether an attempt may succeed: if another one did, or the job has ended, the
   * attempt fails and {@link AttemptFiles} deletes what it wrote.
   */
  public boolean needsTaskCommit(TaskAttemptContext context) {
    return true;
  }

  public void commitTask(TaskAttemptContext context) {}

  public void abortTask(TaskAttemptContext context) {}
}
