package shelduck.bridge;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.InsertableRelation;

/** One write of rows: appended, or put in the place of all rows, or of those of a condition. */
public class LakeWrite implements SupportsOverwriteV2, SupportsTruncate, V1Write, InsertableRelation {
  private final CatalogCall call;
  private final String namespace;
  private final String name;
  private final String staged;
  private String mode = "append";
  private String condition = "";

  public LakeWrite(CatalogCall call, String namespace, String name, String staged) {
    this.call = call;
    this.namespace = namespace;
    this.name = name;
    this.staged = staged;
  }

  public WriteBuilder truncate() {
    mode = "overwrite";
    return this;
  }

  public boolean canOverwrite(Predicate[] predicates) {
    return true;
  }

  public WriteBuilder overwrite(Predicate[] predicates) {
    mode = "replace";
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < predicates.length; i++) {
      String part = new ConditionText().build(predicates[i]);
      text.append(i == 0 ? "(" : " AND (").append(part).append(')');
    }
    condition = predicates.length == 0 ? "true" : text.toString();
    return this;
  }

  public Write build() {
    return this;
  }

  public InsertableRelation toInsertableRelation() {
    return this;
  }

  public void insert(Dataset rows, boolean overwrite) {
    call.rows(new String[] {"write", namespace, name, staged, mode, condition}, rows);
  }
}
