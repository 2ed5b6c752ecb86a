package shelduck.bridge.statements;

import java.lang.reflect.Field;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import shelduck.bridge.catalog.LakeWriteStrategy;
import shelduck.bridge.plans.LakeStrategies;
import shelduck.bridge.plans.ScalaSeq;

/** What serves calls of Spark of which it tells no catalog, by their plans. */
public final class LakeCalls {
  private LakeCalls() {}

  /** Serves the calls of sessions that are made with these extensions. */
  public static void inject(SparkSessionExtensions extensions) {
    extensions.injectPlannerStrategy(new AbstractFunction1() {
      public Object apply(Object session) {
        return new LakeCommand.Strategy();
      }
    });
    extensions.injectHintResolutionRule(new AbstractFunction1() {
      public Object apply(Object session) {
        return new ReadsByName((SparkSession) session);
      }
    });
    extensions.injectResolutionRule(new AbstractFunction1() {
      public Object apply(Object session) {
        return new WritesByPlan((SparkSession) session);
      }
    });
  }

  /** Serves those of a session that exists, of its copies for streams, and of others like it. */
  public static void install(SparkSession session) throws Exception {
    LakeStrategies.install(session, new LakeWriteStrategy());
    LakeStrategies.install(session, new LakeCommand.Strategy());
    SparkSessionExtensions extensions = session.extensions();
    synchronized (extensions) {
      Rule writes = new WritesByPlan(session);
      Seq known = extensions.buildResolutionRules(session);
      if (ScalaSeq.including(known, writes) != known) {
        inject(extensions);
      }
      Analyzer analyzer = session.sessionState().analyzer();
      add(analyzer, "hintResolutionRules", new ReadsByName(session));
      add(analyzer, "extendedResolutionRules", writes);
    }
  }

  /** An analyzer keeps the rules with which its session began, each kind in a field. */
  private static void add(Analyzer analyzer, String kind, Rule rule) throws Exception {
    Field rules;
    try {
      rules = analyzer.getClass().getDeclaredField(kind);
    } catch (NoSuchFieldException error) {
      // Such as the hints of a session with Hive, of which Spark 4.0 makes none by extensions.
      rules = Analyzer.class.getDeclaredField(kind);
    }
    rules.setAccessible(true);
    rules.set(analyzer, ScalaSeq.including((Seq) rules.get(analyzer), rule));
  }
}
