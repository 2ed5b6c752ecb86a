package shelduck.tests;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.mapred.JobConf;

/** Local files as Hadoop has them, but no process of its own for each chmod. */
public class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new Raw());
  }

  public static class Raw extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
      String mode = permission.toString().substring(0, 9);
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(mode));
    }
  }

  /**
   * Makes a configuration small. Each scan and each write sends it to the tasks: for every setting
   * the name of the file that it came from, compressed by itself, and half of them are of YARN.
   */
  public static class Small implements Consumer {
    public void accept(Object given) {
      Configuration settings = (Configuration) given;
      new JobConf(settings); // this adds the settings of jobs
      String[] names = (String[]) settings.getValByRegex("^yarn[.]").keySet().toArray(new String[0]);
      for (int n = 0; n < names.length; n++) {
        settings.unset(names[n]);
      }
      try {
        Field origins = Configuration.class.getDeclaredField("updatingResource");
        origins.setAccessible(true);
        ((Map) origins.get(settings)).clear();
        // Else it begins again with the next part of Hadoop that has settings.
        Field defaults = Configuration.class.getDeclaredField("loadDefaults");
        defaults.setAccessible(true);
        defaults.setBoolean(settings, false);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(error);
      }
    }
  }
}
