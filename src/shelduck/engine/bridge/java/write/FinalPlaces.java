package shelduck.bridge.write;

import java.io.Serializable;
import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import shelduck.bridge.python.TextRows;

/**
 * Where the files of a write into partitions stay: in the directories that DuckDB would choose, below
 * that of the table, under names that begin with the name of the write. Spark would put them below
 * the directory of the write, in directories whose names {@code partition_keys.py} makes. Python
 * checks each place, so a place that is not DuckDB's costs a copy.
 */
public class FinalPlaces implements Serializable {
  /** An option of a write: a row of the names of the keys, encoded as in a path; "" for none. */
  public static final String OPTION = "shelduck.partition.names";
  /** These two are also in {@code partition_keys.py}. */
  private static final String MARK = "\u0001";
  private static final String PERCENT = "~";
  private static final String HEX = "0123456789ABCDEF";
  private static final String PARQUET = ".parquet";

  private final String[] names;

  public FinalPlaces(String option) {
    this.names = (String[]) TextRows.rows(option).get(0);
  }

  /** The directories between that of the write and a file, as Spark makes them. */
  public String working(String path) {
    int end = path.lastIndexOf('/');
    return path.substring(above(path, names.length) + 1, end);
  }

  /** The directory of the table. */
  public String root(String path) {
    return path.substring(0, above(path, names.length + 1));
  }

  /** The last place of a file below the directory of the table. {@code own} no other file has. */
  public String below(String path, String own) {
    int end = above(path, names.length);
    String write = path.substring(above(path, names.length + 1) + 1, end);
    String[] parts = working(path).split("/");
    StringBuilder place = new StringBuilder();
    for (int i = 0; i < names.length; i++) {
      if (names[i].length() > 0) {
        place.append(names[i]).append('=').append(text(parts[i])).append('/');
      }
    }
    return place.append(write).append('-').append(own).append(kind(path)).append(PARQUET).toString();
  }

  /** What a {@link ChangeWriter} puts at the end of a name. */
  private static String kind(String path) {
    return path.endsWith(ChangeWriter.ORIGINS + PARQUET) ? ChangeWriter.ORIGINS
        : path.endsWith(ChangeWriter.NEW + PARQUET) ? ChangeWriter.NEW : "";
  }

  /** The index of the slash above so many directories. */
  private static int above(String path, int directories) {
    int at = path.lastIndexOf('/');
    for (int i = 0; i < directories; i++) {
      at = path.lastIndexOf('/', at - 1);
    }
    return at;
  }

  private static String text(String directory) {
    String text =
        ExternalCatalogUtils.unescapePathName(directory.substring(directory.indexOf('=') + 1));
    try {
      String value = text.startsWith(MARK)
          ? URLDecoder.decode(text.substring(1).replace(PERCENT, "%"), "UTF-8") : text;
      return quoted(value.getBytes("UTF-8"));
    } catch (UnsupportedEncodingException never) {
      throw new IllegalStateException(never);
    }
  }

  private static String quoted(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte each : bytes) {
      int b = each & 0xFF;
      boolean plain = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9')
          || b == '_' || b == '.' || b == '-' || b == '~';
      if (plain) {
        text.append((char) b);
      } else {
        text.append('%').append(HEX.charAt(b >> 4)).append(HEX.charAt(b & 15));
      }
    }
    return text.toString();
  }
}
