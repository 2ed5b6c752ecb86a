package shelduck.bridge.write;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
import shelduck.bridge.python.TextRows;

/**
 * Field ids by the path of group names in a Parquet schema, including list elements and map keys.
 */
public final class FieldIds {
  public static final String OPTION = "shelduck.field.ids";
  private static final List VARIANT = Arrays.asList(new String[] {"metadata", "value", "typed_value"});
  private final HashMap ids = new HashMap();

  private FieldIds() {}

  public static FieldIds of(Configuration conf) {
    FieldIds result = new FieldIds();
    // Raw: a plain get would read ${...} in a name as a variable.
    for (String[] row : TextRows.rows(conf.getRaw(OPTION))) {
      Object[] path = Arrays.copyOfRange(row, 1, row.length);
      result.ids.put(Arrays.asList(path), Integer.valueOf(row[0]));
    }
    return result;
  }

  /** The id of the field at a path; null if it has none. */
  public Integer id(List path) {
    return (Integer) ids.get(path);
  }

  public MessageType applied(MessageType schema) {
    return new MessageType(schema.getName(), fields(schema, new ArrayList(), null));
  }

  /** Refuses ids that match no field, and fields without an id: readers would see NULL there. */
  public void checked(MessageType schema) {
    HashSet unused = new HashSet(ids.keySet());
    fields(schema, new ArrayList(), unused);
    if (!unused.isEmpty()) {
      throw new IllegalArgumentException("no written field lies at " + unused.iterator().next());
    }
  }

  /** The fields with their ids. Without {@code unused}, some may have none. */
  private List fields(GroupType group, List parent, HashSet unused) {
    ArrayList fields = new ArrayList();
    for (int i = 0; i < group.getFieldCount(); i++) {
      Type type = group.getType(i);
      List path = below(parent, type.getName());
      boolean needsNone = type.isRepetition(Type.Repetition.REPEATED) || isVariant(group);
      if (unused != null && !unused.remove(path) && !needsNone) {
        throw new IllegalArgumentException("the written field at " + path + " has no field id");
      }
      if (!type.isPrimitive()) {
        type = type.asGroupType().withNewFields(fields(type.asGroupType(), path, unused));
      }
      Integer id = id(path);
      fields.add(id == null ? type : type.withId(id.intValue()));
    }
    return fields;
  }

  /** The path of a field inside of the one at {@code path}. */
  static List below(List path, String name) {
    ArrayList longer = new ArrayList(path);
    longer.add(name);
    return longer;
  }

  /** Parts of a VARIANT belong to its encoding and have no ids. */
  private static boolean isVariant(GroupType group) {
    for (int i = 0; i < group.getFieldCount(); i++) {
      if (!VARIANT.contains(group.getType(i).getName())) {
        return false;
      }
    }
    return group.containsField("metadata") && group.containsField("value");
  }
}
