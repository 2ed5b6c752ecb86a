package shelduck.bridge.plans;

import java.lang.reflect.Field;

/** Fields that no method of Spark or Parquet shows; each version may have others. */
public final class HiddenField {
  private HiddenField() {}

  /** The field of a class, or of one above it. */
  public static Field of(Class owner, String name) throws NoSuchFieldException {
    for (Class kind = owner; kind != null; kind = kind.getSuperclass()) {
      try {
        Field found = kind.getDeclaredField(name);
        found.setAccessible(true);
        return found;
      } catch (NoSuchFieldException other) {
        continue;
      }
    }
    throw new NoSuchFieldException(name);
  }

  /** What is in the last of these fields, each of which is in what the one before holds. */
  public static Object value(Object owner, String... path) throws ReflectiveOperationException {
    Object found = owner;
    for (String name : path) {
      found = of(found == null ? null : found.getClass(), name).get(found);
    }
    return found;
  }
}
