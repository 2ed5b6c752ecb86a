package shelduck.bridge.scan;

import java.lang.ref.SoftReference;
import java.util.LinkedHashMap;
import java.util.Map;
import org.roaringbitmap.longlong.Roaring64NavigableMap;

/**
 * The positions of delete files that this process has read: a file never changes, and queries ask
 * for it again and again. The garbage collector may take them away.
 */
public final class KeptPositions extends LinkedHashMap {
  private static final int MOST = 4096;
  private static final KeptPositions KNOWN = new KeptPositions();

  /**
   * What a file holds: the positions that count, which nobody may change; how many it has, the last
   * of all, and what is wrong with one, or null.
   */
  public static final class Content {
    public final Roaring64NavigableMap positions;
    public final long count;
    public final long last;
    public final String wrong;

    public Content(Roaring64NavigableMap positions, long count, long last, String wrong) {
      this.positions = positions;
      this.count = count;
      this.last = last;
      this.wrong = wrong;
    }
  }

  private KeptPositions() {
    super(16, 0.75f, true);
  }

  protected boolean removeEldestEntry(Map.Entry eldest) {
    return size() > MOST;
  }

  /** Null if the file has not been read with this bound. */
  public static Content get(String path, long bound) {
    synchronized (KNOWN) {
      SoftReference found = (SoftReference) KNOWN.get(key(path, bound));
      return found == null ? null : (Content) found.get();
    }
  }

  public static void put(String path, long bound, Content content) {
    synchronized (KNOWN) {
      KNOWN.put(key(path, bound), new SoftReference(content));
    }
  }

  private static String key(String path, long bound) {
    return bound + " " + path;
  }
}
