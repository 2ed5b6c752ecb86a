package shelduck.bridge.scan;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.AccessDeniedException;
import org.apache.hadoop.security.AccessControlException;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.execution.datasources.SchemaColumnConvertNotSupportedException;
import org.apache.spark.unsafe.Platform;

/**
 * A task's error if the catalog and a file contradict each other, or a file cannot be read. Its class
 * is one for which no setting makes Spark skip the file.
 */
public final class DamagedLake {
  /** The texts by which Python finds the message: of a lake that is damaged, or out of reach. */
  public static final String MARK = "shelduck found a damaged lake: ";
  public static final String UNREACHED = "shelduck cannot reach a file: ";
  public static final String TOO_NEW = "shelduck's Spark is too old for a file: ";
  public static final String RESTORE =
      "; restore it from a backup, and look at the lake with shelduck check";
  private static final String CODECS = "org.apache.hadoop.io.compress.";
  /** What errors of storages are, by their names; all other errors are about the bytes. */
  private static final String[] STORAGES = {
    "java.net.", "javax.net.", "software.amazon.", "com.amazonaws.", "com.google.cloud.",
    "org.apache.hadoop.fs.s3a.", "org.apache.hadoop.fs.azurebfs.", "org.apache.hadoop.ipc.",
    "org.apache.hadoop.net.", "org.apache.http.", "java.io.InterruptedIOException"
  };
  private static final String[] DISKS = {
    "Input/output error", "Stale file handle", "Too many open files", "Transport endpoint"
  };

  private DamagedLake() {}

  public static IllegalStateException error(String message) {
    return new IllegalStateException(MARK + message);
  }

  public static IllegalStateException rows(String what, long rows, long expected) {
    return error(what + " has " + rows + " rows, but the catalog says " + expected
        + "; restore the file, or correct record_count in ducklake_data_file");
  }

  /**
   * What to throw instead of an error of a reader of {@code what}, a file of a table. It throws the
   * error itself if that is not about the file: the task is to end, or our own message is there.
   */
  public static IllegalStateException reading(Throwable error, String what) {
    TaskContext task = TaskContext.get();
    boolean ends = task != null && task.isInterrupted();
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (ends || each instanceof Error || each instanceof InterruptedException
          || each instanceof ClosedByInterruptException || each instanceof TaskKilledException
          || isMarked(each)) {
        Platform.throwException(error);
      }
    }
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (isUnknownType(each)) {
        return new IllegalStateException(TOO_NEW + what + " has a type that this version of Spark"
            + " cannot read, such as VARIANT; use Spark 4.1 or newer");
      }
      if (each instanceof ClassNotFoundException && text(each).startsWith(CODECS)) {
        return new IllegalStateException(TOO_NEW + what + " cannot be read: Spark does not come with"
            + " the class " + text(each) + "; add a JAR that has it, or write the file again with"
            + " another parquet_compression");
      }
      if (isOfStorage(each)) {
        return new IllegalStateException(UNREACHED + what + " cannot be read: " + told(each)
            + "; check that the storage answers and that Spark's user may read the file");
      }
    }
    return error(what + wrong(error) + RESTORE);
  }

  /** The Parquet of Spark 4.0 takes no type of a column that it does not know. */
  private static boolean isUnknownType(Throwable error) {
    StackTraceElement[] calls = error.getStackTrace();
    return error instanceof NullPointerException && calls.length > 0
        && calls[0].getMethodName().equals("getLogicalTypeAnnotation");
  }

  private static String wrong(Throwable error) {
    Throwable last = error;
    for (Throwable each = error; each != null; each = each.getCause()) {
      last = each;
      if (each instanceof SchemaColumnConvertNotSupportedException) {
        SchemaColumnConvertNotSupportedException misfit =
            (SchemaColumnConvertNotSupportedException) each;
        return " has column " + misfit.getColumn() + " as " + misfit.getPhysicalType()
            + ", which cannot be read as " + misfit.getLogicalType()
            + ", so it is a file of another table, or is damaged";
      }
      if (each instanceof FileNotFoundException) {
        return text(each).indexOf("s a directory") >= 0 ? " is a directory"
            : " is missing, or was cleaned up after its snapshot expired";
      }
    }
    return " cannot be read (" + told(last) + ")";
  }

  private static boolean isOfStorage(Throwable error) {
    String text = text(error);
    if (error instanceof AccessControlException || error instanceof AccessDeniedException
        || (error instanceof IOException && text.indexOf("Permission denied") >= 0)) {
      return true;
    }
    String name = error.getClass().getName();
    for (String storage : STORAGES) {
      if (name.startsWith(storage)) {
        return true;
      }
    }
    for (String disk : DISKS) {
      if (error instanceof IOException && text.contains(disk)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isMarked(Throwable error) {
    return text(error).startsWith(MARK) || text(error).startsWith(UNREACHED)
        || text(error).startsWith(TOO_NEW);
  }

  private static String told(Throwable error) {
    String name = error.getClass().getName();
    String text = text(error).trim();
    int end = text.indexOf('\n');
    text = end < 0 ? text : text.substring(0, end);
    if (name.equals("java.io.IOException") && !text.isEmpty()) {
      return text;
    }
    return name.substring(name.lastIndexOf('.') + 1) + (text.isEmpty() ? "" : ": " + text);
  }

  private static String text(Throwable error) {
    return error.getMessage() == null ? "" : error.getMessage();
  }
}
