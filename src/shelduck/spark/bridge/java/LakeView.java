package shelduck.bridge;

import java.lang.reflect.Method;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * A table of a lake for reads: for Spark it is a view of all of a global temporary view, whose plan
 * Python has made. Its case class gets more fields in every version of Spark, so fields that are
 * not named here get their defaults.
 */
public final class LakeView {
  private static final int PROPERTIES = 11;
  private static final int TEXT = 13;

  private LakeView() {}

  /** {@code hidden} is the name of the view in {@code database}, the database of global views. */
  public static Table of(String catalog, String namespace, String name, String database,
      String hidden, StructType schema) throws Exception {
    Map properties = Map$.MODULE$.empty();
    properties = (Map) properties.updated(
        "view.referredTempViewNames", "[[\"" + database + "\",\"" + hidden + "\"]]");
    properties = (Map) properties.updated("view.query.out.numCols", "0");
    Method apply = null;
    Method[] methods = CatalogTable.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals("apply") && methods[i].getParameterTypes().length > TEXT) {
        apply = methods[i];
      }
    }
    Object[] fields = new Object[apply.getParameterTypes().length];
    fields[0] = new TableIdentifier(name, Option.apply(namespace), Option.apply(catalog));
    fields[1] = CatalogTableType.VIEW();
    fields[2] = CatalogStorageFormat.empty();
    fields[3] = schema;
    for (int i = 4; i < fields.length; i++) {
      Method given = CatalogTable.class.getMethod("apply$default$" + (i + 1), new Class[0]);
      fields[i] = given.invoke(null, new Object[0]);
    }
    fields[PROPERTIES] = properties;
    fields[TEXT] = Option.apply("SELECT * FROM `" + database + "`.`" + hidden + "`");
    return new V1Table((CatalogTable) apply.invoke(null, fields));
  }
}
