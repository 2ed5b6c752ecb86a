package shelduck.bridge;

import java.util.ArrayList;
import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Java lists as the immutable sequences that Spark's interfaces accept. */
public final class ScalaSeq {
  private ScalaSeq() {}

  public static Seq of(List list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  /** A sequence with one more item, unless it has one of its class. */
  public static Seq including(Seq known, Object item) {
    ArrayList all = new ArrayList();
    for (int i = 0; i < known.size(); i++) {
      if (known.apply(i).getClass() == item.getClass()) {
        return known;
      }
      all.add(known.apply(i));
    }
    all.add(item);
    return of(all);
  }
}
