package shelduck.bridge.python;

import java.util.ArrayList;
import java.util.List;
import org.apache.commons.text.StringEscapeUtils;

/**
 * Rows of text that Python and Java pass to each other: every row ends with a newline, tabs
 * separate fields, {@code \\ \t \n \r} are characters inside a field and {@code \N} is null.
 * codec.py has the same rules.
 */
public final class TextRows {
  private TextRows() {}

  public static List<String[]> rows(String text) {
    ArrayList<String[]> rows = new ArrayList<String[]>();
    String[] lines = text.split("\n", -1);
    // Nothing comes behind the last end.
    for (int i = 0; i < lines.length - 1; i++) {
      rows.add(fields(lines[i]));
    }
    return rows;
  }

  /** One of the rows, counted from 0; the others are not read. */
  public static String[] row(String text, int number) {
    int start = 0;
    for (int i = 0; i < number; i++) {
      start = text.indexOf('\n', start) + 1;
    }
    return fields(text.substring(start, text.indexOf('\n', start)));
  }

  private static String[] fields(String row) {
    String[] fields = row.split("\t", -1);
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].indexOf('\\') >= 0) {
        fields[i] = fields[i].equals("\\N") ? null : StringEscapeUtils.unescapeJava(fields[i]);
      }
    }
    return fields;
  }

  /** One field, or those of a row, without its end. */
  public static String encoded(String... fields) {
    StringBuilder row = new StringBuilder();
    for (int i = 0; i < fields.length; i++) {
      row.append(i == 0 ? "" : "\t").append(fields[i].replace("\\", "\\\\")
          .replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r"));
    }
    return row.toString();
  }
}
