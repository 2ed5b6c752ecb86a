package shelduck.bridge.write;

import java.io.IOException;
import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskFailureListener;

/**
 * The files that one attempt of a task began. If the attempt fails or is killed, it deletes them:
 * nobody else knows where they are. {@link LakeCommitter} lets only one attempt of a task succeed.
 */
public class AttemptFiles implements TaskFailureListener {
  private final ArrayList paths = new ArrayList();
  private final Path root;
  private final Configuration conf;

  public AttemptFiles(Configuration conf) {
    // All files are below the directory in which that of the write is.
    this.root = new Path(conf.get(FileOutputFormat.OUTDIR)).getParent();
    this.conf = conf;
    TaskContext.get().addTaskFailureListener(this);
  }

  public void add(String path) {
    paths.add(new Path(path));
  }

  public void onTaskFailure(TaskContext context, Throwable error) {
    // Unlike `delete`, it leaves no marker of an empty directory on S3.
    try {
      BulkDelete deletion = root.getFileSystem(conf).createBulkDelete(root);
      int page = deletion.pageSize();
      for (int i = 0; i < paths.size(); i += page) {
        deletion.bulkDelete(new ArrayList(paths.subList(i, Math.min(i + page, paths.size()))));
      }
    } catch (IOException unreachable) {
      // Each further page would be tried in vain for a minute. The search for orphans finds them.
      return;
    }
  }
}
