package shelduck.bridge.statements;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.Sidecar;

/**
 * The rows of a statement that Python runs: its columns are known once it ran. Spark copies the
 * nodes of a plan, and all copies share one answer.
 */
public class LakeAnswer {
  private final SparkSession session;
  private final String text;
  private final String[] names;
  private Throwable error;
  private Seq output = ScalaSeq.items();
  private InternalRow[] rows;

  /** The answer to a text that names some lakes of a session. */
  public LakeAnswer(SparkSession session, String text, String[] names) {
    this.session = session;
    this.names = names;
    this.text = text;
  }

  /** The answer to a statement for which nobody finds a plan. */
  public LakeAnswer(Throwable error) {
    this(null, "", new String[0]);
    this.error = error;
  }

  /** Runs the statement, once, whether it succeeds or not. */
  public synchronized InternalRow[] rows() {
    if (error != null) {
      Platform.throwException(error);
    }
    if (rows == null) {
      try {
        rows = read(ask());
      } catch (Throwable failed) {
        // Nobody who looks at the plan again may run it again.
        error = failed;
        Platform.throwException(failed);
      }
    }
    return rows;
  }

  /** The answer for a plan that is made now; a statement of a script may run again and again. */
  public LakeAnswer planned() {
    return this;
  }

  /** Lets the next call run it again. */
  protected synchronized void forget() {
    rows = null;
    error = null;
  }

  /** Has Python run it; null has no rows. */
  protected Dataset ask() {
    return (Dataset) Sidecar.asked(session, "run", text, names);
  }

  private InternalRow[] read(Dataset found) {
    if (found == null) {
      return new InternalRow[0];
    }
    InternalRow[] made = found.queryExecution().executedPlan().executeCollect();
    output = found.queryExecution().analyzed().output();
    return made;
  }

  /** The columns of the rows; none before the statement ran. */
  public Seq output() {
    return output;
  }

  public String toString() {
    return text.length() > 100 ? text.substring(0, 100) + "..." : text;
  }
}
