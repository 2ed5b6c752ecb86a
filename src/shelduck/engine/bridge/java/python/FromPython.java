package shelduck.bridge.python;

import java.util.concurrent.ConcurrentHashMap;

/** What Python and Java give each other besides text, by tokens in the text. */
public final class FromPython {
  /** The Python objects to call. */
  public static final ConcurrentHashMap ASKED = new ConcurrentHashMap();
  /** Errors that Spark threw while Python computed an answer. */
  public static final ConcurrentHashMap THROWN = new ConcurrentHashMap();
  /** Datasets that are answers. */
  public static final ConcurrentHashMap GIVEN = new ConcurrentHashMap();

  /** Lists of columns that Java gives to Python, which takes them. */
  public static final ConcurrentHashMap COLUMNS = new ConcurrentHashMap();

  private FromPython() {}
}
