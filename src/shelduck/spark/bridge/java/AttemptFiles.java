package shelduck.bridge;

import java.io.IOException;
import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskFailureListener;

/**
 * The files that one attempt of a task began. If the attempt fails or is killed, it deletes them:
 * nobody else knows where they are. {@link LakeCommitter} lets only one attempt of a task succeed.
 */
public class AttemptFiles implements TaskFailureListener {
  private final ArrayList paths = new ArrayList();
  private Configuration conf;

  public void add(String path, Configuration settings) {
    if (conf == null) {
      conf = settings;
      TaskContext.get().addTaskFailureListener(this);
    }
    paths.add(path);
  }

  public void onTaskFailure(TaskContext context, Throwable error) {
    try {
      for (int i = 0; i < paths.size(); i++) {
        Path path = new Path((String) paths.get(i));
        path.getFileSystem(conf).delete(path, false);
      }
    } catch (IOException unreachable) {
      // Each further file would be tried in vain for a minute. The search for orphans finds them.
      return;
    }
  }
}
