package shelduck.bridge.catalog;

import java.lang.reflect.Method;
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
      String text, Seq whole) throws Exception {
    Map named = Map$.MODULE$.empty();
    for (int i = 0; i < properties.length; i += 2) {
      if (properties[i + 1] != null) {
        named = (Map) named.updated(properties[i], properties[i + 1]);
      }
    }
    Method apply = null;
    Method[] methods = CatalogTable.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals("apply") && methods[i].getParameterTypes().length > TEXT) {
        apply = methods[i];
      }
    }
    Object[] fields = new Object[apply.getParameterTypes().length];
    fields[0] = name;
    fields[1] = CatalogTableType.VIEW();
    fields[2] = CatalogStorageFormat.empty();
    fields[3] = schema;
    for (int i = 4; i < fields.length; i++) {
      Method given = CatalogTable.class.getMethod("apply$default$" + (i + 1), new Class[0]);
      fields[i] = given.invoke(null, new Object[0]);
    }
    fields[PROPERTIES] = named;
    fields[TEXT] = Option.apply(text);
    CatalogTable made = (CatalogTable) apply.invoke(null, fields);
    for (int i = TEXT + 1; whole != null && i < fields.length; i++) {
      if (made.productElementName(i).equals("multipartIdentifier")) {
        fields[i] = Option.apply(whole);
        return (CatalogTable) apply.invoke(null, fields);
      }
    }
    return made;
  }
}
