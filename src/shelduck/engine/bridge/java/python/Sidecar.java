package shelduck.bridge.python;

import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.URL;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import javax.net.SocketFactory;
import org.apache.commons.io.output.TeeOutputStream;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.CircularBuffer;
import org.apache.spark.util.RedirectThread;
import py4j.CallbackClient;
import py4j.ClientServer;
import py4j.Gateway;
import py4j.Py4JJavaServer;
import py4j.PythonClient;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The Python process beside a driver that has none, which knows the lakes of the configuration. It
 * gets the port and the secret of a server on its standard input, and ends when that is closed.
 */
public final class Sidecar {
  private static final String SETTING = "spark.sql.catalog.";
  private static final String CATALOG = "shelduck.bridge.LakeCatalog";
  private static final String PYTHON = "spark.shelduck.python";
  private static final long SECONDS = 120L;
  private static final ThreadLocal INSIDE = new ThreadLocal();
  private static Sidecar running;
  private static boolean isUsed;
  private final String program;
  private final Process python;
  private final Py4JServer server;
  private final CircularBuffer said = new CircularBuffer(10240);
  private final Thread saying;
  private BiFunction door;

  private Sidecar(SparkConf conf) {
    program = program(conf);
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    // Python finds classes by the loader of the thread that serves it.
    thread.setContextClassLoader(Sidecar.class.getClassLoader());
    server = new Py4JServer(conf);
    try {
      server.start();
      ProcessBuilder command = new ProcessBuilder(program, "-m", "shelduck.doors.sidecar");
      command.environment().remove("SPARK_REMOTE");
      python = command.redirectErrorStream(true).start();
      saying = new RedirectThread(python.getInputStream(), new TeeOutputStream(System.err, said),
          "shelduck-sidecar", false);
      saying.start();
      // It throws no error: if Python has ended, what it said tells why.
      new PrintStream(python.getOutputStream(), true)
          .println(server.getListeningPort() + " " + server.secret());
    } catch (IOException error) {
      server.shutdown();
      throw (RuntimeException) failed("cannot start Python for the lakes: " + error.getMessage() + "; set "
          + PYTHON + " to a Python that has Shelduck");
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  private static String program(SparkConf conf) {
    String found = conf.get(PYTHON, System.getenv("PYSPARK_PYTHON"));
    return found == null || found.isEmpty() ? "python3" : found;
  }

  // What Java asks

  /** Allows a sidecar in a driver that is no Python; starts it if the configuration has lakes. */
  public static synchronized void prepare(SparkContext context) {
    isUsed = !isPython();
    if (isUsed) {
      loadClasses();
    }
    if (isUsed && running == null && hasLakes(context.conf())) {
      try {
        running = new Sidecar(context.conf());
      } catch (Exception error) {
        // The first statement about a lake tells it; others need no lake.
        running = null;
      }
    }
  }

  /** A Thrift server closes the loader of all JARs when its first client leaves. */
  private static void loadClasses() {
    ClassLoader loader = Sidecar.class.getClassLoader();
    try {
      URL place = Sidecar.class.getProtectionDomain().getCodeSource().getLocation();
      JarFile jar = new JarFile(new File(place.toURI()));
      Enumeration entries = jar.entries();
      while (entries.hasMoreElements()) {
        String name = ((JarEntry) entries.nextElement()).getName();
        if (name.endsWith(".class")) {
          loader.loadClass(name.substring(0, name.length() - 6).replace('/', '.'));
        }
      }
      jar.close();
    } catch (Exception error) {
      // They are loaded one by one.
      return;
    }
  }

  /** Whether this driver may have a sidecar; a Python driver has its lakes by itself. */
  public static boolean isUsed() {
    return isUsed;
  }

  /** Whether the calling thread works for Python, which knows its lakes by itself. */
  public static boolean isPython() {
    if (INSIDE.get() != null) {
      return true;
    }
    StackTraceElement[] calls = Thread.currentThread().getStackTrace();
    for (int i = calls.length - 1; i > 0; i--) {
      if (calls[i].getClassName().startsWith("py4j.")) {
        return true;
      }
    }
    return false;
  }

  /** The names of the lakes that a session has by its settings. */
  public static String[] lakes(SparkSession session) {
    ArrayList found = new ArrayList();
    Map<String, String> all =
        CollectionConverters.asJava(session.sessionState().conf().getAllConfs());
    for (Map.Entry<String, String> each : all.entrySet()) {
      String key = (String) each.getKey();
      if (key.startsWith(SETTING) && CATALOG.equals(each.getValue())) {
        found.add(key.substring(SETTING.length()));
      }
    }
    return (String[]) found.toArray(new String[0]);
  }

  private static boolean hasLakes(SparkConf conf) {
    for (Tuple2 each : conf.getAllWithPrefix(SETTING)) {
      if (CATALOG.equals(each._2())) {
        return true;
      }
    }
    return false;
  }

  /**
   * What Python answers about a session, of whose lakes it needs those of some names: null, a
   * Dataset, or an empty text. What it is asked for is {@code attach}, {@code plan}, which do
   * nothing twice, or {@code run}.
   */
  public static Object asked(SparkSession session, String what, String text, String[] names) {
    Sidecar sidecar = running(session.sparkContext());
    try {
      return sidecar.ask(session, what, text, names);
    } catch (RuntimeException error) {
      sidecar.requireGone(error, !what.equals("run"));
      return running(session.sparkContext()).ask(session, what, text, names);
    }
  }

  /** Throws an error of a request, unless Python has ended and it may be asked again. */
  public static void requireRepeatable(RuntimeException error, boolean isRepeatable) {
    Sidecar sidecar = running;
    if (sidecar == null) {
      throw error;
    }
    sidecar.requireGone(error, isRepeatable);
  }

  private void requireGone(RuntimeException error, boolean isRepeatable) {
    if (!isGone(error)) {
      throw error;
    }
    if (!isRepeatable) {
      throw (RuntimeException) failed("Python ended while it ran this statement, which has landed or not;"
          + " see the newest snapshots (DESCRIBE HISTORY of the table) before you run it again");
    }
  }

  private Object ask(SparkSession session, String what, String text, String[] names) {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    Object outer = INSIDE.get();
    Object found;
    try {
      INSIDE.set(this);
      String lakes = names.length == 0 ? "" : '\t' + TextRows.encoded(names);
      found = door().apply(session, TextRows.encoded(what, text) + lakes + '\n');
    } finally {
      INSIDE.set(outer);
      thread.setContextClassLoader(before);
    }
    if (found instanceof String && ((String) found).length() > 0) {
      String[] told = (String[]) TextRows.rows((String) found).get(0);
      Throwable thrown = told[0].equals("THROWN") ? (Throwable) FromPython.THROWN.remove(told[1])
          : new Told(told[1], Option.apply(told[0].isEmpty() ? null : told[0]));
      Platform.throwException(thrown);
    }
    return found;
  }

  // Its life

  /** Forgets Python if it has ended; who asks next starts it again. */
  public static synchronized void renew() {
    if (running != null && !running.python.isAlive() && running.door != null) {
      end();
      // Sessions attach their lakes again.
      FromPython.ASKED.clear();
    }
  }

  private static synchronized Sidecar running(SparkContext context) {
    renew();
    if (running == null) {
      running = new Sidecar(context.conf());
    }
    return running;
  }

  /** Python calls this when it can be asked, at a port of its own. */
  public static void ready(BiFunction door, int port) throws Exception {
    Sidecar sidecar = begun();
    if (sidecar == null) {
      throw new IllegalStateException("the driver has ended this Python, or never began it");
    }
    synchronized (sidecar) {
      sidecar.call(port);
      sidecar.door = door;
      sidecar.notifyAll();
    }
  }

  /** The sidecar whose Python may be ready before its constructor has returned; null without one. */
  private static synchronized Sidecar begun() {
    return running;
  }

  /** Calls Python at a port, with the secret, which py4j itself forgets when the port changes. */
  private void call(int port) throws Exception {
    Py4JJavaServer java = ((ClientServer) server.server()).getJavaServer();
    Field client = Gateway.class.getDeclaredField("cbClient");
    client.setAccessible(true);
    client.set(java.getGateway(), new PythonClient(java.getGateway(), null, port,
        InetAddress.getLoopbackAddress(), CallbackClient.DEFAULT_MIN_CONNECTION_TIME,
        CallbackClient.DEFAULT_MIN_CONNECTION_TIME_UNIT, SocketFactory.getDefault(), java, true, 0,
        server.secret()));
  }

  /** What to ask, once it is there. Janino makes private methods static, which lock the class. */
  synchronized BiFunction door() {
    long last = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
    while (door == null) {
      boolean isLate = System.nanoTime() > last;
      if (isLate || !python.isAlive()) {
        end();
        throw (RuntimeException) failed("cannot start Python for the lakes: " + program
            + (isLate ? " takes more than " + SECONDS + " seconds" : " -m shelduck.doors.sidecar ended")
            + last() + "; install Shelduck into that Python, or set " + PYTHON
            + " to one that has it");
      }
      try {
        wait(50L);
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
        throw (RuntimeException) failed("the statement was cancelled");
      }
    }
    return door;
  }

  /** The last line that Python wrote. */
  private String last() {
    try {
      saying.join(1000L);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
    String all = said.toString().trim();
    return all.isEmpty() ? "" : " (" + all.substring(all.lastIndexOf('\n') + 1) + ")";
  }

  /** Ends Python, if it runs. */
  public static synchronized void end() {
    Sidecar sidecar = running;
    running = null;
    if (sidecar == null) {
      return;
    }
    try {
      sidecar.python.getOutputStream().close();
      if (!sidecar.python.waitFor(5L, TimeUnit.SECONDS)) {
        sidecar.python.destroyForcibly();
      }
    } catch (Exception error) {
      sidecar.python.destroyForcibly();
    }
    sidecar.server.shutdown();
  }

  /** Whether Python has ended, so that an error is no answer. */
  private boolean isGone(Throwable error) {
    if (!error.getClass().getName().startsWith("py4j.")) {
      return false;
    }
    try {
      return python.waitFor(2L, TimeUnit.SECONDS);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private static Object failed(String told) {
    Platform.throwException(new Told(told, Option.empty()));
    return null;
  }

  /** An error of a lake as one of Spark's. Clients print calls below one that has no SQL state. */
  public static final class Told extends AnalysisException {
    public Told(String told, Option condition) {
      super(told, Option.empty(), Option.empty(), Option.empty(), condition, Map$.MODULE$.empty(),
          new QueryContext[0]);
    }

    public String getSqlState() {
      String state = super.getSqlState();
      return state == null ? "HY000" : state;
    }

    public String toString() {
      return AnalysisException.class.getName() + ": " + getMessage();
    }
  }
}
