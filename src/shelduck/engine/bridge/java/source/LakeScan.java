package shelduck.bridge.source;

import java.util.ArrayList;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CatalystScan;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.plans.NodeChange;
import shelduck.bridge.plans.ScalaSeq;

/** The rows of a Dataset as a relation: columns and filters of a query are passed on to it. */
public class LakeScan extends BaseRelation implements CatalystScan {
  private final SQLContext context;
  private final Dataset rows;

  public LakeScan(SQLContext context, Dataset rows) {
    this.context = context;
    this.rows = rows;
  }

  public SQLContext sqlContext() {
    return context;
  }

  public StructType schema() {
    return rows.schema();
  }

  public boolean needConversion() {
    return false;
  }

  public long sizeInBytes() {
    return rows.queryExecution().optimizedPlan().stats().sizeInBytes().toLong();
  }

  public RDD buildScan(Seq<Attribute> columns, Seq<Expression> filters) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    for (Expression each : ScalaSeq.list(filters)) {
      plan = new Filter(here(each), plan);
    }
    ArrayList wanted = new ArrayList();
    for (int i = 0; i < columns.size(); i++) {
      wanted.add(here((Expression) columns.apply(i)));
    }
    LogicalPlan found = new Project(ScalaSeq.of(wanted), plan);
    return Dataset.ofRows(rows.sparkSession(), found).queryExecution().toRdd();
  }

  /** The expression over the columns of the Dataset, which have the names of the relation's. */
  private Expression here(Expression expression) {
    SameNames names = new SameNames(rows.queryExecution().analyzed().output());
    return (Expression) expression.transform(new NodeChange(names));
  }

  /** Puts the attribute of the same name in the place of each attribute. */
  private static final class SameNames extends AbstractFunction1 {
    private final Seq<Attribute> attributes;

    SameNames(Seq<Attribute> attributes) {
      this.attributes = attributes;
    }

    public Object apply(Object node) {
      if (!(node instanceof Attribute)) {
        return null;
      }
      String name = ((Attribute) node).name();
      for (Attribute each : ScalaSeq.list(attributes)) {
        if (each.name().equals(name)) {
          return each;
        }
      }
      throw new IllegalStateException("the relation has no column " + name);
    }
  }
}
