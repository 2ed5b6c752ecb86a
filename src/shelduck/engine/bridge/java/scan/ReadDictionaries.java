package shelduck.bridge.scan;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.Dictionary;
import org.apache.parquet.column.Encoding;
import org.apache.parquet.column.EncodingStats;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.page.DictionaryPageReadStore;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.collection.AbstractIterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * The values in the dictionaries of one column of a file, each with the constants of the file. If
 * they are not certain to be all values of the column, there is one row, with NULL.
 */
public class ReadDictionaries extends AbstractFunction1 implements Serializable {
  private final DataType[] types;
  private final int id;
  private final String table;
  private final Broadcast conf;

  /**
   * {@code types} are that of the values, then those of the constants, the first of which is the
   * name of the column in the file; null if it is the one with this {@code id}.
   */
  public ReadDictionaries(DataType[] types, int id, String table, Broadcast conf) {
    this.types = types;
    this.id = id;
    this.table = table;
    this.conf = conf;
  }

  public Object apply(Object opened) {
    PartitionedFile file = (PartitionedFile) opened;
    InternalRow constants = file.partitionValues();
    String name = constants.isNullAt(0) ? null : constants.getUTF8String(0).toString();
    Configuration settings = ((SerializableConfiguration) conf.value()).value();
    List found;
    try {
      byte[] key = ReadWhole.key(file, LakeFileIndex.KEY);
      found = DictionaryPages.of(file.toPath(), key, name, id, types[0], settings);
    } catch (Throwable error) {
      // Whoever reads the file tells what is wrong with it. But a task that is to end does end, and
      // a storage that does not answer is not asked for each file.
      IllegalStateException told =
          DamagedLake.reading(error, "data file " + file.filePath() + " of " + table);
      if (told.getMessage().startsWith(DamagedLake.UNREACHED)) {
        throw told;
      }
      found = null;
    }
    return new Values(found, constants, types);
  }

  private static final class Values extends AbstractIterator {
    private final List dictionaries;
    private final DataType[] types;
    private final UnsafeProjection made;
    private final GenericInternalRow row;
    private boolean tells;
    private int at;
    private int next;

    Values(List dictionaries, InternalRow constants, DataType[] types) {
      this.dictionaries = dictionaries;
      this.types = types;
      made = UnsafeProjection.create(types);
      row = new GenericInternalRow(types.length);
      for (int i = 1; i < types.length; i++) {
        row.update(i, constants.get(i - 1, types[i]));
      }
      tells = dictionaries == null;
    }

    public boolean hasNext() {
      while (dictionaries != null && at < dictionaries.size()
          && next > ((Dictionary) dictionaries.get(at)).getMaxId()) {
        at++;
        next = 0;
      }
      return tells || (dictionaries != null && at < dictionaries.size());
    }

    public Object next() {
      if (!hasNext()) {
        throw new java.util.NoSuchElementException();
      }
      row.update(0, tells ? null : value((Dictionary) dictionaries.get(at), next++));
      tells = false;
      return made.apply(row);
    }

    private Object value(Dictionary values, int number) {
      if (types[0].equals(DataTypes.StringType)) {
        return UTF8String.fromBytes(values.decodeToBinary(number).getBytes());
      }
      return types[0].equals(DataTypes.DoubleType)
          ? (Object) Double.valueOf(values.decodeToDouble(number))
          : (Object) Float.valueOf(values.decodeToFloat(number));
    }
  }

  /** Parquet files, of which a scan reads the dictionaries of one column: see {@link ReadDictionaries}. */
  public static class DictionaryFormat extends ParquetFileFormat {
    /** An option of a scan: the id of the column. */
    public static final String OPTION = "shelduck.dictionary";

    public String toString() {
      return "DictionaryFormat";
    }

    public boolean supportBatch(SparkSession session, StructType schema) {
      return false;
    }

    public boolean isSplitable(SparkSession session, Map options, Path path) {
      return false;
    }

    public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data,
        StructType partition, StructType required, Seq pushed, Map options, Configuration conf) {
      if (required.length() != 1) {
        throw new IllegalArgumentException("a scan of dictionaries reads one column");
      }
      return new ReadDictionaries(LakeParquet.types(required, partition),
          Integer.parseInt((String) options.get(OPTION).get()),
          LakeParquet.table(options), LakeParquet.shared(session, conf));
    }
  }

  /**
   * The dictionary pages of one column of a file, if they hold every value that the column has. No
   * other page is read: the footer says how each page is encoded.
   */
  public static final class DictionaryPages {
    /** Dictionaries of more bytes are not read. A writer makes one of 1 MiB for each row group. */
    private static final long MOST = 4194304L;

    private DictionaryPages() {}

    /**
     * A {@link Dictionary} for each row group with values; null if they are not certain to hold all, or
     * the values are not of this type. The column is found by its name, or its id if that is null.
     */
    public static List of(Path path, byte[] key, String name, int id, DataType type,
        Configuration conf) throws IOException {
      ParquetFileReader reader = OpenedFile.checked(path, key, conf);
      try {
        MessageType schema = reader.getFileMetaData().getSchema();
        Type column = column(schema, name, id);
        if (column == null || !holds(column, type)) {
          return null;
        }
        List groups = reader.getRowGroups();
        ArrayList chunks = new ArrayList();
        long bytes = 0;
        for (int i = 0; i < groups.size(); i++) {
          ColumnChunkMetaData chunk = chunk((BlockMetaData) groups.get(i), column.getName());
          if (chunk == null || !(isEmpty(chunk) || isWhole(chunk))) {
            return null;
          }
          bytes += isEmpty(chunk) ? 0 : size(chunk);
          chunks.add(chunk);
        }
        return bytes > MOST ? null : read(reader, schema, chunks);
      } finally {
        reader.close();
      }
    }

    private static List read(ParquetFileReader reader, MessageType schema, List chunks)
        throws IOException {
      ArrayList found = new ArrayList();
      List groups = reader.getRowGroups();
      long bytes = 0;
      for (int i = 0; i < chunks.size(); i++) {
        ColumnChunkMetaData chunk = (ColumnChunkMetaData) chunks.get(i);
        if (isEmpty(chunk)) {
          continue;
        }
        ColumnDescriptor column = schema.getColumnDescription(chunk.getPath().toArray());
        DictionaryPageReadStore pages =
            (DictionaryPageReadStore) reader.getDictionaryReader((BlockMetaData) groups.get(i));
        DictionaryPage page = pages.readDictionaryPage(column);
        bytes += page == null ? 0 : page.getUncompressedSize();
        if (page == null || bytes > MOST) {
          return null;
        }
        found.add(page.getEncoding().initDictionary(column, page));
      }
      return found;
    }

    private static Type column(MessageType schema, String name, int id) {
      Type found = null;
      for (int i = 0; i < schema.getFieldCount(); i++) {
        Type field = schema.getType(i);
        boolean isIt = name != null ? field.getName().equals(name)
            : field.getId() != null && field.getId().intValue() == id;
        if (isIt && found != null) {
          return null;
        }
        found = isIt ? field : found;
      }
      return found;
    }

    /** Whether a column has values of this type, as they are. */
    private static boolean holds(Type column, DataType type) {
      if (!column.isPrimitive() || column.isRepetition(Type.Repetition.REPEATED)) {
        return false;
      }
      PrimitiveType.PrimitiveTypeName stored = column.asPrimitiveType().getPrimitiveTypeName();
      LogicalTypeAnnotation meaning = column.getLogicalTypeAnnotation();
      if (type.equals(DataTypes.StringType)) {
        return stored == PrimitiveType.PrimitiveTypeName.BINARY
            && (LogicalTypeAnnotation.stringType().equals(meaning)
                || LogicalTypeAnnotation.jsonType().equals(meaning));
      }
      return meaning == null && (type.equals(DataTypes.DoubleType)
          ? stored == PrimitiveType.PrimitiveTypeName.DOUBLE
          : type.equals(DataTypes.FloatType) && stored == PrimitiveType.PrimitiveTypeName.FLOAT);
    }

    private static ColumnChunkMetaData chunk(BlockMetaData group, String name) {
      for (ColumnChunkMetaData chunk : group.getColumns()) {
        String[] names = chunk.getPath().toArray();
        if (names.length == 1 && names[0].equals(name)) {
          return chunk;
        }
      }
      return null;
    }

    private static boolean isEmpty(ColumnChunkMetaData chunk) {
      Statistics known = chunk.getStatistics();
      return chunk.getValueCount() == 0 || (known != null && known.isNumNullsSet()
          && known.getNumNulls() == chunk.getValueCount());
    }

    /**
     * Whether the footer says that all pages refer to the dictionary. Writers that do not count pages
     * list the encodings: then no other one may be there. PLAIN may be that of the dictionary itself, or
     * of pages that came when it was full, so it proves nothing.
     */
    private static boolean isWhole(ColumnChunkMetaData chunk) {
      EncodingStats counted = chunk.getEncodingStats();
      if (counted != null) {
        return counted.hasDictionaryPages() && counted.hasDictionaryEncodedPages()
            && !counted.hasNonDictionaryEncodedPages();
      }
      HashSet others = new HashSet(chunk.getEncodings());
      boolean isListed = others.remove(Encoding.PLAIN_DICTIONARY);
      isListed |= others.remove(Encoding.RLE_DICTIONARY);
      // Levels, which say where a value is NULL, are in one of these.
      others.remove(Encoding.RLE);
      others.remove(Encoding.BIT_PACKED);
      return isListed && others.isEmpty();
    }

    /** The bytes of the dictionary in the file; those of the chunk if the footer does not say it. */
    private static long size(ColumnChunkMetaData chunk) {
      long at = chunk.getDictionaryPageOffset();
      long behind = chunk.getFirstDataPageOffset();
      return at > 0 && at < behind ? behind - at : chunk.getTotalSize();
    }
  }
}
