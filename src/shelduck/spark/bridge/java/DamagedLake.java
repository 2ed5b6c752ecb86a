package shelduck.bridge;

/** A task's error if the catalog and a file contradict each other. */
public final class DamagedLake {
  /** The text by which Python finds the message. */
  public static final String MARK = "shelduck found a damaged lake: ";

  private DamagedLake() {}

  /** An error of a class for which no setting makes Spark skip the file. */
  public static IllegalStateException error(String message) {
    return new IllegalStateException(MARK + message);
  }
}
