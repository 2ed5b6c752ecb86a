package shelduck.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.ref.SoftReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.catalyst.InternalRow;
import org.roaringbitmap.longlong.LongIterator;
import org.roaringbitmap.longlong.Roaring64NavigableMap;

/** The deleted positions of one data file: from its delete file and from the catalog. */
public final class DeletedPositions {
  private static final int POSITION_ID = 2147483645;
  private static final int SNAPSHOT_ID = 2147483539;
  private static final int VECTOR_MAGIC = 0xD1D33964;
  private static final int CONTAINER_MAGIC = 0x50464131;

  private DeletedPositions() {}

  /**
   * Three constants from {@code at}: delete file, last snapshot that counts, inlined positions. The
   * delete file must have {@code count} positions, each once and below {@code rows}, unless these are
   * negative. What is wrong with it is told with the name of the table.
   */
  public static Roaring64NavigableMap of(InternalRow constants, int at, long rows, long count,
      byte[] key, String table, Configuration conf) {
    Roaring64NavigableMap positions = new Roaring64NavigableMap();
    if (!constants.isNullAt(at)) {
      String path = constants.getUTF8String(at).toString();
      long bound = constants.isNullAt(at + 1) ? Long.MAX_VALUE : constants.getLong(at + 1);
      positions = sound(path, bound, rows, count, key, table, conf);
    }
    if (!constants.isNullAt(at + 2)) {
      Roaring64NavigableMap shared = positions;
      positions = new Roaring64NavigableMap();
      positions.or(shared);
      ByteBuffer inlined =
          ByteBuffer.wrap(constants.getBinary(at + 2)).order(ByteOrder.LITTLE_ENDIAN);
      while (inlined.hasRemaining()) {
        positions.addLong(inlined.getLong());
      }
    }
    return positions;
  }

  private static Roaring64NavigableMap sound(String path, long bound, long rows, long count,
      byte[] key, String table, Configuration conf) {
    String what = "delete file " + path + " of " + table;
    KeptPositions.Content found = KeptPositions.get(path, bound);
    if (found == null) {
      try {
        found = stored(path, bound, key, conf);
      } catch (Throwable error) {
        throw DamagedLake.reading(error, what);
      }
      KeptPositions.put(path, bound, found);
    }
    if (count >= 0 && found.count != count) {
      throw DamagedLake.error(what + " has " + found.count + " rows, but the catalog says " + count
          + "; restore the file, or correct delete_count in ducklake_delete_file");
    }
    if (found.wrong != null || (rows >= 0 && found.last >= rows)) {
      String wrong = found.wrong != null ? found.wrong
          : "position " + found.last + ", but its data file has " + rows + " rows";
      throw DamagedLake.error(what + " has " + wrong + "; restore the file");
    }
    return found.positions;
  }

  /** What a delete file has, which others read too. */
  private static KeptPositions.Content stored(
      String name, long bound, byte[] key, Configuration conf) throws IOException {
    Path path = new Path(name);
    Found found = new Found(bound);
    if (path.getName().endsWith(".puffin")) {
      addVectors(found, path, conf);
    } else {
      addParquet(found, path, key, conf);
    }
    return found.content();
  }

  /** The positions of a file while it is read. */
  private static final class Found {
    private final Roaring64NavigableMap positions = new Roaring64NavigableMap();
    /** Those that do not count yet. */
    private final Roaring64NavigableMap later = new Roaring64NavigableMap();
    private final long bound;
    private long count = 0;
    private long last = -1;
    private String wrong = null;

    Found(long bound) {
      this.bound = bound;
    }

    void add(long position, long snapshot) {
      count++;
      last = Math.max(last, position);
      if (position < 0) {
        wrong = "position " + position;
      }
      (snapshot <= bound ? positions : later).addLong(position);
    }

    KeptPositions.Content content() {
      later.or(positions);
      if (wrong == null && later.getLongCardinality() != count) {
        wrong = "a position twice";
      }
      return new KeptPositions.Content(positions, count, last, wrong);
    }
  }

  private static void addParquet(Found found, Path path, byte[] key, Configuration conf)
      throws IOException {
    ParquetFileReader reader = OpenedFile.checked(path, key, conf);
    try {
      MessageType file = reader.getFileMetaData().getSchema();
      Type position = column(file, POSITION_ID, "pos");
      Type snapshot = column(file, SNAPSHOT_ID, "_ducklake_internal_snapshot_id");
      if (position == null) {
        throw new IOException("it has no column of positions");
      }
      ArrayList wanted = new ArrayList();
      wanted.add(position);
      if (snapshot != null) {
        wanted.add(snapshot);
      }
      MessageType schema = new MessageType(file.getName(), wanted);
      reader.setRequestedSchema(schema);
      String writer = reader.getFileMetaData().getCreatedBy();
      PageReadStore group = reader.readNextRowGroup();
      while (group != null) {
        ColumnReadStoreImpl columns = new ColumnReadStoreImpl(
            group, new GroupRecordConverter(schema).getRootConverter(), schema, writer);
        ColumnReader rows = reader(columns, schema, position);
        ColumnReader snapshots = snapshot == null ? null : reader(columns, schema, snapshot);
        long count = group.getRowCount();
        for (long i = 0; i < count; i++) {
          long row = value(rows);
          found.add(row, snapshots == null ? Long.MIN_VALUE : value(snapshots));
        }
        group = reader.readNextRowGroup();
      }
    } finally {
      reader.close();
    }
  }

  private static Type column(MessageType schema, int id, String name) {
    for (int i = 0; i < schema.getFieldCount(); i++) {
      Type type = schema.getType(i);
      if (type.getId() != null && type.getId().intValue() == id) {
        return type;
      }
    }
    return schema.containsField(name) ? schema.getType(name) : null;
  }

  private static ColumnReader reader(ColumnReadStoreImpl columns, MessageType schema, Type type)
      throws IOException {
    if (!type.isPrimitive() || type.asPrimitiveType().getPrimitiveTypeName()
        != PrimitiveType.PrimitiveTypeName.INT64 || type.isRepetition(Type.Repetition.REPEATED)) {
      throw new IOException("column " + type.getName() + " is not a plain INT64");
    }
    return columns.getColumnReader(schema.getColumnDescription(new String[] {type.getName()}));
  }

  private static long value(ColumnReader column) throws IOException {
    if (column.getCurrentDefinitionLevel() < column.getDescriptor().getMaxDefinitionLevel()) {
      throw new IOException("it contains a NULL");
    }
    long value = column.getLong();
    column.consume();
    return value;
  }

  /**
   * A bare deletion-vector-v1 blob, or a Puffin file with such blobs. Each of several has what was
   * deleted up to the snapshot that it names.
   */
  private static void addVectors(Found found, Path path, Configuration conf) throws IOException {
    byte[] bytes = content(path, conf);
    TreeMap<Long, Roaring64NavigableMap> vectors = new TreeMap<Long, Roaring64NavigableMap>();
    if (bytes.length < 4 || ByteBuffer.wrap(bytes).getInt(0) != CONTAINER_MAGIC) {
      vectors.put(Long.valueOf(Long.MIN_VALUE), vector(bytes, 0, bytes.length));
    } else {
      JsonNode blobs = blobs(bytes);
      for (JsonNode each : blobs) {
        addBlob(vectors, each, bytes);
      }
      if (vectors.isEmpty()) {
        throw new IOException("it has no deletion vector");
      }
      if (vectors.size() > 1 && vectors.containsKey(Long.valueOf(Long.MIN_VALUE))) {
        throw new IOException("one of its deletion vectors does not name its snapshot");
      }
    }
    Roaring64NavigableMap known = new Roaring64NavigableMap();
    for (Map.Entry<Long, Roaring64NavigableMap> entry : vectors.entrySet()) {
      Roaring64NavigableMap vector = (Roaring64NavigableMap) entry.getValue();
      vector.andNot(known);
      known.or(vector);
      LongIterator each = vector.getLongIterator();
      while (each.hasNext()) {
        found.add(each.next(), ((Long) entry.getKey()).longValue());
      }
    }
  }

  private static void addBlob(TreeMap<Long, Roaring64NavigableMap> vectors, JsonNode blob, byte[] bytes) throws IOException {
    if (!"deletion-vector-v1".equals(in(blob, "type").asText())) {
      return;
    }
    JsonNode properties = in(blob, "properties");
    Long snapshot =
        Long.valueOf(in(properties, "ducklake-snapshot-id").asLong(Long.MIN_VALUE));
    long at = in(blob, "offset").asLong(-1);
    long length = in(blob, "length").asLong(-1);
    if (at < 0 || length < 0 || at + length > bytes.length) {
      throw new IOException("a deletion vector lies beyond its end");
    }
    Roaring64NavigableMap vector = vector(bytes, (int) at, (int) length);
    long count = vector.getLongCardinality();
    if (in(properties, "cardinality").asLong(count) != count) {
      throw new IOException("a deletion vector has " + count + " positions, but its footer says "
          + in(properties, "cardinality").asText());
    }
    if (vectors.put(snapshot, vector) != null) {
      throw new IOException("it has two deletion vectors of one snapshot");
    }
  }

  private static JsonNode blobs(byte[] bytes) throws IOException {
    int end = bytes.length - 12;
    ByteBuffer file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int length = end < 8 ? -1 : file.getInt(end);
    if (length < 0 || length > end - 8 || ByteBuffer.wrap(bytes).getInt(end + 8) != CONTAINER_MAGIC) {
      throw new IOException("it is not a Puffin file");
    }
    if ((file.getInt(end + 4) & 1) != 0) {
      throw new IOException("its footer is compressed, which Shelduck does not read");
    }
    return in(new ObjectMapper().readTree(bytes, end - length, length), "blobs");
  }

  private static JsonNode in(JsonNode node, String name) {
    return (JsonNode) node.path(name);
  }

  /** Length, magic, portable 64-bit bitmap, CRC. */
  private static Roaring64NavigableMap vector(byte[] bytes, int at, int length) throws IOException {
    ByteBuffer blob = ByteBuffer.wrap(bytes);
    if (length < 12 || blob.getInt(at) != length - 8 || blob.getInt(at + 4) != VECTOR_MAGIC) {
      throw new IOException("it is not a deletion vector");
    }
    CRC32 crc = new CRC32();
    crc.update(bytes, at + 4, length - 8);
    if ((int) crc.getValue() != blob.getInt(at + length - 4)) {
      throw new IOException("its checksum does not match");
    }
    Roaring64NavigableMap vector = new Roaring64NavigableMap();
    vector.deserializePortable(
        new DataInputStream(new ByteArrayInputStream(bytes, at + 8, length - 12)));
    return vector;
  }

  private static byte[] content(Path path, Configuration conf) throws IOException {
    FileSystem files = path.getFileSystem(conf);
    byte[] bytes = new byte[(int) files.getFileStatus(path).getLen()];
    FSDataInputStream in = files.open(path);
    try {
      in.readFully(0, bytes);
    } finally {
      in.close();
    }
    return bytes;
  }

  /**
   * The positions of delete files that this process has read: a file never changes, and queries ask
   * for it again and again. The garbage collector may take them away.
   */
  public static final class KeptPositions extends LinkedHashMap {
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
}
