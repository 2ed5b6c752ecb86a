package shelduck.bridge;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
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
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.catalyst.InternalRow;
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
   * delete file must have {@code count} positions, unless that is negative.
   */
  public static Roaring64NavigableMap of(
      InternalRow constants, int at, long count, Configuration conf) throws IOException {
    Roaring64NavigableMap positions = new Roaring64NavigableMap();
    if (!constants.isNullAt(at)) {
      String path = constants.getUTF8String(at).toString();
      long bound = constants.isNullAt(at + 1) ? Long.MAX_VALUE : constants.getLong(at + 1);
      positions = stored(path, bound, count, conf);
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

  /** The positions of a delete file, which others read too. */
  private static Roaring64NavigableMap stored(
      String name, long bound, long count, Configuration conf) throws IOException {
    KeptPositions.Content known = KeptPositions.get(name, bound);
    if (known != null && (count < 0 || known.count == count)) {
      return known.positions;
    }
    Path path = new Path(name);
    Roaring64NavigableMap positions = new Roaring64NavigableMap();
    long found = path.getName().endsWith(".puffin")
        ? addVector(positions, path, conf) : addParquet(positions, path, bound, conf);
    if (count >= 0 && found != count) {
      throw new IOException("delete file " + path + " has " + found
          + " rows, but the catalog says " + count + "; restore the file, or correct"
          + " delete_count in ducklake_delete_file");
    }
    KeptPositions.put(name, bound, new KeptPositions.Content(positions, found));
    return positions;
  }

  /** Return how many positions the file has, including those that do not count yet. */
  private static long addParquet(
      Roaring64NavigableMap positions, Path path, long bound, Configuration conf)
      throws IOException {
    ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf));
    try {
      MessageType file = reader.getFileMetaData().getSchema();
      Type position = column(file, POSITION_ID, "pos");
      Type snapshot = column(file, SNAPSHOT_ID, "_ducklake_internal_snapshot_id");
      if (position == null) {
        throw new IOException("delete file " + path + " has no column of positions");
      }
      ArrayList wanted = new ArrayList();
      wanted.add(position);
      if (snapshot != null) {
        wanted.add(snapshot);
      }
      MessageType schema = new MessageType(file.getName(), wanted);
      reader.setRequestedSchema(schema);
      String writer = reader.getFileMetaData().getCreatedBy();
      long found = 0;
      PageReadStore group = reader.readNextRowGroup();
      while (group != null) {
        ColumnReadStoreImpl columns = new ColumnReadStoreImpl(
            group, new GroupRecordConverter(schema).getRootConverter(), schema, writer);
        ColumnReader rows = reader(columns, schema, position, path);
        ColumnReader snapshots =
            snapshot == null ? null : reader(columns, schema, snapshot, path);
        long count = group.getRowCount();
        found += count;
        for (long i = 0; i < count; i++) {
          long row = value(rows, path);
          if (snapshots == null || value(snapshots, path) <= bound) {
            positions.addLong(row);
          }
        }
        group = reader.readNextRowGroup();
      }
      return found;
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

  private static ColumnReader reader(
      ColumnReadStoreImpl columns, MessageType schema, Type type, Path path) throws IOException {
    if (!type.isPrimitive() || type.asPrimitiveType().getPrimitiveTypeName()
        != PrimitiveType.PrimitiveTypeName.INT64 || type.isRepetition(Type.Repetition.REPEATED)) {
      throw new IOException(
          "column " + type.getName() + " of delete file " + path + " is not a plain INT64");
    }
    return columns.getColumnReader(schema.getColumnDescription(new String[] {type.getName()}));
  }

  private static long value(ColumnReader column, Path path) throws IOException {
    if (column.getCurrentDefinitionLevel() < column.getDescriptor().getMaxDefinitionLevel()) {
      throw new IOException("delete file " + path + " contains a NULL");
    }
    long value = column.getLong();
    column.consume();
    return value;
  }

  /** A bare deletion-vector-v1 blob: length, magic, portable 64-bit bitmap, CRC. */
  private static long addVector(Roaring64NavigableMap positions, Path path, Configuration conf)
      throws IOException {
    byte[] bytes = content(path, conf);
    ByteBuffer blob = ByteBuffer.wrap(bytes);
    if (bytes.length >= 4 && blob.getInt(0) == CONTAINER_MAGIC) {
      throw new IOException(
          "delete file " + path + " is a Puffin container; only plain deletion vectors are supported");
    }
    if (bytes.length < 12 || blob.getInt(0) != bytes.length - 8 || blob.getInt(4) != VECTOR_MAGIC) {
      throw new IOException("delete file " + path + " is not a deletion vector");
    }
    CRC32 crc = new CRC32();
    crc.update(bytes, 4, bytes.length - 8);
    if ((int) crc.getValue() != blob.getInt(bytes.length - 4)) {
      throw new IOException("delete file " + path + " is damaged: its checksum does not match");
    }
    Roaring64NavigableMap vector = new Roaring64NavigableMap();
    vector.deserializePortable(
        new DataInputStream(new ByteArrayInputStream(bytes, 8, bytes.length - 12)));
    positions.or(vector);
    return vector.getLongCardinality();
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
}
