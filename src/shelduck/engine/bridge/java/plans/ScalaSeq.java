package shelduck.bridge.plans;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Java lists as the immutable sequences that Spark's interfaces accept, and the other way round. */
public final class ScalaSeq {
  private ScalaSeq() {}

  public static <T> Seq<T> of(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  public static <T> Seq<T> items(T... items) {
    return of(Arrays.asList(items));
  }

  public static <T> List<T> list(Seq<T> seq) {
    return CollectionConverters.asJava(seq);
  }

  /** A sequence with one more item, unless it has one of its class. */
  public static <T> Seq<T> including(Seq<T> known, T item) {
    ArrayList<T> all = new ArrayList<T>(list(known));
    for (T each : all) {
      if (each.getClass() == item.getClass()) {
        return known;
      }
    }
    all.add(item);
    return of(all);
  }
}
