package io.shelduck;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import shelduck.bridge.python.Sidecar;
import shelduck.bridge.statements.LakeParser;
import shelduck.bridge.statements.WritesByPlan;

/**
 * Lakes for every session of a Spark application, in whatever language: the value of
 * {@code spark.plugins}, which starts Python beside the driver, and of
 * {@code spark.sql.extensions}, which shows it the statements, and calls that no catalog is told.
 */
public class Shelduck extends AbstractFunction1 implements SparkPlugin {
  public Object apply(Object extensions) {
    ((SparkSessionExtensions) extensions).injectParser(new LakeParser.Maker());
    WritesByPlan.inject((SparkSessionExtensions) extensions);
    return BoxedUnit.UNIT;
  }

  public DriverPlugin driverPlugin() {
    return new Driver();
  }

  public ExecutorPlugin executorPlugin() {
    return null;
  }

  private static final class Driver implements DriverPlugin {
    public Map init(SparkContext context, PluginContext about) {
      Sidecar.prepare(context);
      return Collections.emptyMap();
    }

    public void shutdown() {
      Sidecar.end();
    }
  }
}
