import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;
import org.codehaus.commons.compiler.CompilerFactoryFactory;
import org.codehaus.commons.compiler.ICompiler;

/**
 * Compiles the bridge for the Spark of the class path: {@code java Compile.java SOURCES CLASSES}.
 *
 * <p>Janino does it, as it does in a running Spark. The compiler of the JDK refuses classes that
 * extend those of Scala, such as nodes of plans.
 */
class Compile {
  public static void main(String[] folders) throws Exception {
    ICompiler compiler =
        CompilerFactoryFactory.getDefaultCompilerFactory(Compile.class.getClassLoader())
            .newCompiler();
    compiler.setSourceVersion(8);
    compiler.setTargetVersion(8);
    String[] places = System.getProperty("java.class.path").split(File.pathSeparator);
    compiler.setClassPath(Arrays.stream(places).map(File::new).toArray(File[]::new));
    compiler.setDestinationDirectory(new File(folders[1]), false);
    try (Stream<Path> found = Files.walk(Path.of(folders[0]))) {
      compiler.compile(
          found
              .filter(path -> path.toString().endsWith(".java"))
              .sorted()
              .map(Path::toFile)
              .toArray(File[]::new));
    }
  }
}
