package shelduck.bridge;

import java.util.concurrent.ConcurrentHashMap;

/** What Python gives Java besides text, by tokens in the text. */
public final class FromPython {
  /** The Python objects to call. */
  public static final ConcurrentHashMap ASKED = new ConcurrentHashMap();
  /** Errors that Spark threw while Python computed an answer. */
  public static final ConcurrentHashMap THROWN = new ConcurrentHashMap();
  /** Datasets that are answers. */
  public static final ConcurrentHashMap GIVEN = new ConcurrentHashMap();

  private FromPython() {}
}
