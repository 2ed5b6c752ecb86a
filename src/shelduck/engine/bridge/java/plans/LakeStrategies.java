package shelduck.bridge.plans;

import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkStrategy;

/** Strategies that the bridge adds to the planners of sessions. */
public final class LakeStrategies {
  private LakeStrategies() {}

  /** Adds a strategy after the existing ones, unless there is one of its class. */
  public static void install(SparkSession session, SparkStrategy strategy) {
    ExperimentalMethods methods = session.experimental();
    synchronized (methods) {
      methods.extraStrategies_$eq(ScalaSeq.including(methods.extraStrategies(), strategy));
    }
  }
}
