package shelduck.bridge.statements;

import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.ScalaSeq;

/** A statement that Python runs, as Spark runs its own commands: when its plan is executed. */
public class LakeCommand extends LogicalPlan implements Command {
  private final LakeAnswer answer;

  public LakeCommand(LakeAnswer answer) {
    this.answer = answer;
  }

  public Seq output() {
    return answer.output();
  }

  /** Spark keeps the one that it asks for first, which may be too early. */
  public StructType schema() {
    return DataTypeUtils.fromAttributes(answer.output());
  }

  public Statistics stats() {
    return Statistics.DUMMY();
  }

  public Seq nodePatterns() {
    return none();
  }

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(Seq all) {
  }

  public Seq children() {
    return none();
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return this;
  }

  public int productArity() {
    return 1;
  }

  public Object productElement(int at) {
    return answer;
  }

  public boolean canEqual(Object other) {
    return other instanceof LakeCommand;
  }

  public boolean equals(Object other) {
    return other instanceof LakeCommand && answer == ((LakeCommand) other).answer;
  }

  private static Seq none() {
    return ScalaSeq.items();
  }

  /** Plans such statements, and nothing else. */
  public static final class Strategy extends SparkStrategy {
    public Seq apply(LogicalPlan plan) {
      return plan instanceof LakeCommand
          ? ScalaSeq.items(new Run(((LakeCommand) plan).answer.planned())) : none();
    }
  }

  /** Runs such a statement. */
  public static class Run extends V2CommandExec {
    private final transient LakeAnswer answer;

    public Run(LakeAnswer answer) {
      this.answer = answer;
    }

    public String nodeName() {
      return "LakeCommand";
    }

    public Seq output() {
      return answer.output();
    }

    public Seq run() {
      return ScalaSeq.items(answer.rows());
    }

    public Seq children() {
      return none();
    }

    public TreeNode withNewChildrenInternal(IndexedSeq children) {
      return this;
    }

    public int productArity() {
      return 1;
    }

    public Object productElement(int at) {
      return answer;
    }

    public boolean canEqual(Object other) {
      return other instanceof Run;
    }

    public boolean equals(Object other) {
      return other instanceof Run && answer == ((Run) other).answer;
    }
  }
}
