package shelduck.bridge.planner;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import shelduck.bridge.plans.ScalaSeq;

/** Rows of a lake that the plan itself has, whose values are counted. */
public class KnownRows extends LocalRelation {
  private final Statistics known;

  /** Spark copies a plan by these, which are its parts and those of {@link #otherCopyArgs}. */
  public KnownRows(Seq output, Seq rows, boolean isStreaming, Option stream, Statistics known) {
    super(output, rows, isStreaming, stream);
    this.known = known;
  }

  public Seq otherCopyArgs() {
    return ScalaSeq.of(Collections.singletonList(known));
  }

  public static LogicalPlan of(LocalRelation rows) {
    ArrayList stats = new ArrayList();
    for (int i = 0; i < rows.output().size(); i++) {
      Attribute column = (Attribute) rows.output().apply(i);
      DataType type = column.dataType();
      boolean isText = type instanceof StringType || type instanceof BinaryType;
      if (isText || MetadataValue.isKnown(type)) {
        stats.add(new Tuple2(column, column(rows, i, type, isText)));
      }
    }
    BigInt count = BigInt.apply(rows.data().size());
    return new KnownRows(rows.output(), rows.data(), rows.isStreaming(), rows.stream(),
        KnownFiles.statistics(rows.output(), count, stats));
  }

  private static Object column(LocalRelation rows, int at, DataType type, boolean isText) {
    HashSet values = new HashSet();
    long nulls = 0;
    long sum = 0;
    long most = 0;
    Object low = null;
    Object high = null;
    for (InternalRow each : ScalaSeq.list(rows.data())) {
      Object value = each.get(at, type);
      if (value == null) {
        nulls++;
      } else if (isText) {
        boolean isString = value instanceof UTF8String;
        UTF8String text = isString ? (UTF8String) value : UTF8String.fromBytes((byte[]) value);
        long length = isString ? text.numChars() : text.numBytes();
        values.add(text);
        sum += length;
        most = Math.max(most, length);
      } else {
        values.add(value);
        low = low == null || MetadataValue.isBetter("MIN", value, low) ? value : low;
        high = high == null || MetadataValue.isBetter("MAX", value, high) ? value : high;
      }
    }
    long texts = rows.data().size() - nulls;
    long size = type.defaultSize();
    Object average = !isText ? (Object) Long.valueOf(size) : texts == 0 ? null : Long.valueOf((sum + texts - 1) / texts);
    Object longest = !isText ? (Object) Long.valueOf(size) : texts == 0 ? null : Long.valueOf(most);
    return KnownFiles.stat(BigInt.apply(values.size()), low, high, BigInt.apply(nulls), average, longest);
  }

  public String nodeName() {
    return "LocalRelation";
  }

  public Statistics computeStats() {
    return known;
  }

  /** Spark keeps a plan in place of one that equals it. */
  public boolean canEqual(Object other) {
    return other instanceof KnownRows;
  }

  public boolean equals(Object other) {
    return other instanceof KnownRows && super.equals(other);
  }

  public int hashCode() {
    return super.hashCode();
  }
}
