package shelduck.bridge;

import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Java lists as the immutable sequences that Spark's interfaces accept. */
public final class ScalaSeq {
  private ScalaSeq() {}

  public static Seq of(List list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
