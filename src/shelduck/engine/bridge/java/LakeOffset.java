package shelduck.bridge;

import org.apache.spark.sql.execution.streaming.Offset;

/** How far a streaming query has read a table; only Python understands the text. */
public class LakeOffset extends Offset {
  private final String text;

  public LakeOffset(String text) {
    this.text = text;
  }

  public String json() {
    return text;
  }
}
