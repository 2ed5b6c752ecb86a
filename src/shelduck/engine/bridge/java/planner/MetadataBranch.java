package shelduck.bridge.planner;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import scala.collection.immutable.Seq;
import shelduck.bridge.plans.LakeRule;
import shelduck.bridge.plans.ScalaSeq;
import shelduck.bridge.python.TextRows;
import shelduck.bridge.scan.LakeFileIndex;

/**
 * Rows of one place, and the columns of theirs that {@code MetadataRule} asks for: the files of a
 * lake, or rows that the plan itself has.
 */
public final class MetadataBranch {
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
    LogicalPlan at = plan;
    Attribute[] wanted = (Attribute[]) columns.clone();
    while (at instanceof Project) {
      for (int i = 0; i < wanted.length; i++) {
        wanted[i] = wanted[i] == null ? null : LakeRule.source(((Project) at).projectList(), wanted[i].exprId());
        if (columns[i] != null && wanted[i] == null) {
          return false;
        }
      }
      at = (LogicalPlan) at.children().apply(0);
    }
    if (at instanceof Union) {
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
    ArrayList conditions = new ArrayList();
    while (at instanceof Filter) {
      conditions.add(((Filter) at).condition());
      at = (LogicalPlan) at.children().apply(0);
    }
    String filters = LakeFileIndex.allTexts(conditions);
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
      int at = place(local.output(), columns[i]);
      long count = 0;
      Object best = null;
      for (int r = 0; r < local.data().size(); r++) {
        Object value = ((InternalRow) local.data().apply(r)).get(at, columns[i].dataType());
        if (value == null) {
          continue;
        }
        count++;
        if (!words[i].equals("COUNT")) {
          best = best == null || MetadataValue.isBetter(words[i], value, best) ? value : best;
        }
      }
      found[i] = words[i].equals("COUNT") ? (Object) Long.valueOf(count) : best;
    }
    return found;
  }

  private static int place(Seq columns, Attribute column) {
    for (int i = 0; i < columns.size(); i++) {
      if (((Attribute) columns.apply(i)).exprId().equals(column.exprId())) {
        return i;
      }
    }
    throw new IllegalStateException("a plan has no column " + column);
  }
}
