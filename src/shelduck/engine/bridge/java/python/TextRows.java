package shelduck.bridge.python;

import java.util.ArrayList;
import java.util.List;

/**
 * Rows of text that Python and Java pass to each other: every row ends with a newline, tabs
 * separate fields, {@code \\ \t \n \r} are characters inside a field and {@code \N} is null.
 * codec.py has the same rules.
 */
public final class TextRows {
  private TextRows() {}

  public static List<String[]> rows(String text) {
    ArrayList<String[]> rows = new ArrayList<String[]>();
    int start = 0;
    int end = text.indexOf('\n');
    while (end >= 0) {
      rows.add(fields(text.substring(start, end)));
      start = end + 1;
      end = text.indexOf('\n', start);
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
    ArrayList fields = new ArrayList();
    int start = 0;
    int end = row.indexOf('\t');
    while (end >= 0) {
      fields.add(decoded(row.substring(start, end)));
      start = end + 1;
      end = row.indexOf('\t', start);
    }
    fields.add(decoded(row.substring(start)));
    return (String[]) fields.toArray(new String[fields.size()]);
  }

  private static String decoded(String field) {
    if (field.indexOf('\\') < 0) {
      return field;
    }
    if (field.equals("\\N")) {
      return null;
    }
    StringBuilder plain = new StringBuilder(field.length());
    for (int i = 0; i < field.length(); i++) {
      char c = field.charAt(i);
      if (c != '\\') {
        plain.append(c);
        continue;
      }
      i++;
      c = field.charAt(i);
      plain.append(c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c);
    }
    return plain.toString();
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
