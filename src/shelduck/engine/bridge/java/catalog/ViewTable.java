package shelduck.bridge.catalog;

import java.lang.reflect.Constructor;
import org.apache.commons.lang3.reflect.MethodUtils;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * What Spark's catalog knows about a view. The case class gets more fields in every version of
 * Spark, so fields that are not named here get their defaults.
 */
public final class ViewTable {
  private static final int PROPERTIES = 11;
  private static final int TEXT = 13;

  private ViewTable() {}

  /**
   * {@code properties} are names and values in turns, without those whose value is null;
   * {@code text} may be null. {@code whole} are the parts of the name as messages and columns have
   * it, where Spark knows such names: else it takes every view for one of its own catalog.
   */
  public static CatalogTable of(TableIdentifier name, StructType schema, String[] properties,
      String text, Seq whole) {
    Map named = Map$.MODULE$.empty();
    for (int i = 0; i < properties.length; i += 2) {
      if (properties[i + 1] != null) {
        named = (Map) named.updated(properties[i], properties[i + 1]);
      }
    }
    try {
      Constructor made = CatalogTable.class.getConstructors()[0];
      Object[] fields = new Object[made.getParameterTypes().length];
      fields[0] = name;
      fields[1] = CatalogTableType.VIEW();
      fields[2] = CatalogStorageFormat.empty();
      fields[3] = schema;
      for (int i = 4; i < fields.length; i++) {
        fields[i] = MethodUtils.invokeStaticMethod(
            CatalogTable.class, "apply$default$" + (i + 1), new Object[0]);
      }
      fields[PROPERTIES] = named;
      fields[TEXT] = Option.apply(text);
      CatalogTable found = (CatalogTable) made.newInstance(fields);
      for (int i = TEXT + 1; whole != null && i < fields.length; i++) {
        if (found.productElementName(i).equals("multipartIdentifier")) {
          fields[i] = Option.apply(whole);
          found = (CatalogTable) made.newInstance(fields);
        }
      }
      return found;
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error.getMessage(), error);
    }
  }
}
