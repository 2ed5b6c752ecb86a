package shelduck.bridge;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.package$AttributeSeq;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import scala.PartialFunction;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import shelduck.bridge.plans.LakeRows;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;
import shelduck.bridge.scan.LakeFileIndex;
import shelduck.bridge.scan.MetadataValue;

/**
 * Answers COUNT, MIN and MAX of whole files from the catalog, of all or of those that filters choose:
 * the plan becomes one row, and Spark runs no job. What it does not understand, or the catalog does not know for certain, stays as it
 * is.
 */
public class MetadataRule extends LakeRule {
  /** The setting of a session that turns the rule off. */
  public static final String SETTING = "spark.shelduck.metadataAnswers";

  public TreeNode apply(TreeNode plan) {
    return isOn(SETTING) ? answered((LogicalPlan) plan) : plan;
  }

  public LogicalPlan answered(LogicalPlan plan) {
    if (plan instanceof Aggregate && ((Aggregate) plan).groupingExpressions().isEmpty()) {
      LogicalPlan found = null;
      try {
        found = row((Aggregate) plan);
      } catch (Exception error) {
        // The files have the rows too.
        found = null;
      } catch (LinkageError error) {
        found = null;
      }
      return found == null ? plan : found;
    }
    return withAnsweredChildren(plan);
  }

  /** The aggregate as one row, null if it needs the rows of the table. */
  private static LogicalPlan row(Aggregate aggregate) {
    ArrayList calls = new ArrayList();
    for (NamedExpression each : ScalaSeq.list(aggregate.aggregateExpressions())) {
      if (!addCalls((Expression) each, calls)) {
        return null;
      }
    }
    String[] words = new String[calls.size()];
    Attribute[] columns = new Attribute[calls.size()];
    for (int i = 0; i < words.length; i++) {
      Expression function = function(calls.get(i));
      words[i] = function instanceof Count ? "COUNT" : function instanceof Min ? "MIN" : "MAX";
      Expression value = (Expression) function.children().apply(0);
      columns[i] = value instanceof Attribute ? (Attribute) value : null;
    }
    ArrayList branches = new ArrayList();
    if (words.length == 0 || !MetadataBranch.addAll(
        (LogicalPlan) aggregate.children().apply(0), columns, branches)) {
      return null;
    }
    Object[] totals = totals(branches, words);
    return totals == null ? null : row(aggregate, calls, totals);
  }

  private static Expression function(Object call) {
    return (Expression) ((AggregateExpression) call).children().apply(0);
  }

  private static boolean addCalls(Expression expression, List calls) {
    if (expression instanceof AggregateExpression) {
      calls.add(expression);
      return isKnown((AggregateExpression) expression);
    }
    if (expression instanceof Attribute || !expression.deterministic()) {
      return false;
    }
    for (Expression each : ScalaSeq.list(expression.children())) {
      if (!addCalls(each, calls)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isKnown(AggregateExpression call) {
    Expression function = function(call);
    if (call.mode() != Complete$.MODULE$ || call.isDistinct() || call.filter().isDefined()
        || function.children().size() != 1) {
      return false;
    }
    Expression value = (Expression) function.children().apply(0);
    if (function instanceof Count) {
      return value instanceof Attribute
          || (value instanceof Literal && ((Literal) value).value() != null);
    }
    boolean ends = function instanceof Min || function instanceof Max;
    return ends && value instanceof Attribute && MetadataValue.isKnown(value.dataType());
  }

  /** Null if a branch has no answer; an element is null if there is no value. */
  private static Object[] totals(List branches, String[] words) {
    Object[] totals = new Object[words.length];
    for (int b = 0; b < branches.size(); b++) {
      Object[] part = ((MetadataBranch) branches.get(b)).answers(words);
      if (part == null) {
        return null;
      }
      for (int i = 0; i < words.length; i++) {
        if (part[i] != null) {
          totals[i] = both(words[i], totals[i], part[i]);
        }
      }
    }
    return totals;
  }

  private static Object both(String word, Object one, Object other) {
    if (one == null) {
      return other;
    }
    if (word.equals("COUNT")) {
      return Long.valueOf(((Long) one).longValue() + ((Long) other).longValue());
    }
    return MetadataValue.isBetter(word, other, one) ? other : one;
  }

  private static LogicalPlan row(Aggregate aggregate, List calls, Object[] totals) {
    HashMap known = new HashMap();
    for (int i = 0; i < totals.length; i++) {
      DataType type = ((Expression) calls.get(i)).dataType();
      boolean counts = function(calls.get(i)) instanceof Count;
      Object total = totals[i] == null && counts ? Long.valueOf(0) : totals[i];
      if (MetadataValue.hasTwoForms(total)) {
        return null;
      }
      known.put(calls.get(i), new Literal(total, type));
    }
    Seq expressions = aggregate.aggregateExpressions();
    PartialFunction found = CollectionConverters.asScala(known);
    Object[] values = new Object[expressions.size()];
    for (int i = 0; i < values.length; i++) {
      TreeNode value = ((Expression) expressions.apply(i)).transform(found);
      values[i] = ((Expression) value).eval(null);
    }
    ArrayList rows = new ArrayList();
    rows.add(new GenericInternalRow(values));
    return LakeRows.relation(aggregate.output(), rows);
  }

  /**
   * Rows of one place, and the columns of theirs that {@code MetadataRule} asks for: the files of a
   * lake, or rows that the plan itself has.
   */
  public static final class MetadataBranch {
    // The first field of a row that is a filter.
    private static final String WHERE = "WHERE";
    private final LogicalPlan rows;
    private final Attribute[] columns;
    private final String filters;

    private MetadataBranch(LogicalPlan rows, Attribute[] columns, String filters) {
      this.rows = rows;
      this.columns = columns;
      this.filters = filters;
    }

    /** Adds the branches below a plan to a list; false if one of them is something else. */
    public static boolean addAll(LogicalPlan plan, Attribute[] columns, List found) {
      Tuple3 parts = (Tuple3) PhysicalOperation$.MODULE$.unapply(plan).get();
      LogicalPlan at = (LogicalPlan) parts._3();
      Attribute[] wanted = new Attribute[columns.length];
      for (int i = 0; i < wanted.length; i++) {
        wanted[i] = columns[i] == null ? null : LakeRule.source((Seq) parts._1(), columns[i].exprId());
        if (columns[i] != null && wanted[i] == null) {
          return false;
        }
      }
      if (at instanceof Union && ((Seq) parts._2()).isEmpty()) {
        Seq above = at.output();
        for (LogicalPlan part : ScalaSeq.list(at.children())) {
          Attribute[] theirs = new Attribute[wanted.length];
          for (int i = 0; i < wanted.length; i++) {
            theirs[i] = wanted[i] == null
                ? null : (Attribute) part.output().apply(place(above, wanted[i]));
          }
          if (!addAll(part, theirs, found)) {
            return false;
          }
        }
        return true;
      }
      String filters = LakeFileIndex.allTexts(ScalaSeq.list((Seq) parts._2()));
      if (filters == null) {
        return false;
      }
      found.add(new MetadataBranch(at, wanted, filters));
      return LakeFileIndex.of(at) != null || (at instanceof LocalRelation && filters.isEmpty());
    }

    /**
     * The answers for these rows, null if they are unknown: in the order of {@code words}, a Long
     * for COUNT, a value of the column for MIN and MAX; COUNT of no column counts rows.
     */
    public Object[] answers(String[] words) {
      if (rows instanceof LocalRelation) {
        return counted((LocalRelation) rows, words);
      }
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < words.length; i++) {
        if (columns[i] != null && LakeFileIndex.isMetadata(columns[i])) {
          return null;
        }
        text.append(columns[i] == null ? words[i] : TextRows.encoded(words[i], columns[i].name()))
            .append('\n');
      }
      for (String[] each : TextRows.rows(filters)) {
        String condition = each[0];
        text.append(TextRows.encoded(WHERE, condition)).append('\n');
      }
      String[] texts = LakeFileIndex.of(rows).answers(text.toString());
      if (texts == null) {
        return null;
      }
      Object[] found = new Object[words.length];
      for (int i = 0; i < words.length; i++) {
        if (texts[i] != null) {
          found[i] = words[i].equals("COUNT")
              ? Long.valueOf(texts[i]) : MetadataValue.of(texts[i], columns[i].dataType());
        }
      }
      return found;
    }

    /** The answers of the rows that the plan has, which are few. */
    private Object[] counted(LocalRelation local, String[] words) {
      Object[] found = new Object[words.length];
      for (int i = 0; i < words.length; i++) {
        if (columns[i] == null) {
          found[i] = Long.valueOf(local.data().size());
          continue;
        }
        List values = LakeRows.values(local, place(local.output(), columns[i]));
        if (words[i].equals("COUNT")) {
          found[i] = Long.valueOf(values.size());
        } else if (!values.isEmpty()) {
          found[i] = words[i].equals("MIN") ? Collections.min(values) : Collections.max(values);
        }
      }
      return found;
    }

    private static int place(Seq columns, Attribute column) {
      return new package$AttributeSeq(columns).indexOf(column.exprId());
    }
  }
}
