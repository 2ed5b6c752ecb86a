package shelduck.bridge;

import java.util.ArrayList;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/** The rules that the bridge adds to the optimizer of a session. */
public final class SessionRules {
  private SessionRules() {}

  /** Adds a rule after the existing ones, unless there is one of its class. */
  public static void add(SparkSession session, Rule rule) {
    ExperimentalMethods methods = session.experimental();
    synchronized (methods) {
      ArrayList rules = new ArrayList();
      Seq known = methods.extraOptimizations();
      for (int i = 0; i < known.size(); i++) {
        if (known.apply(i).getClass() == rule.getClass()) {
          return;
        }
        rules.add(known.apply(i));
      }
      rules.add(rule);
      methods.extraOptimizations_$eq(ScalaSeq.of(rules));
    }
  }
}
