package shelduck.bridge.write;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.bytes.HeapByteBufferAllocator;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnWriteStore;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.ColumnChunkPageWriteStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.hadoop.util.HadoopStreams;
import org.apache.parquet.io.ColumnIOFactory;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructType;
import shelduck.bridge.python.TextRows;

/**
 * Writes a file that has the column chunks of an older file, copied byte for byte, and behind them
 * new columns with the same rows in the same row groups. Its rows have the new columns and, last,
 * the id of the older file and the position of the row in it, which must count from 0 without a gap.
 */
public class CopyingWriter extends OutputWriter {
  /** An option of a write: for each task a row with the older file, its id, and columns to copy. */
  public static final String OPTION = "shelduck.copied";
  /** What Spark says about all columns of a file is not true of the new file. */
  private static final String ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata";

  private final String path;
  private final Configuration conf;
  private final ParquetFileReader old;
  private final SeekableInputStream bytes;
  private final ComposedFile composed;
  private final SeekableInputStream chunks;
  private final HashSet copied = new HashSet();
  private final List<BlockMetaData> groups;
  private final HeldValues.IdWriteSupport support = new HeldValues.IdWriteSupport();
  private final MessageType made;
  private final HashMap meaning = new HashMap();
  private final StructType schema;
  private final ProjectingInternalRow row;
  private final long id;
  private final int file;
  private final ParquetFileWriter writer;
  private final ParquetProperties properties;
  private final CodecFactory codecs;
  private final CompressionCodecName codec;
  private ColumnChunkPageWriteStore pages;
  private ColumnWriteStore columns;
  private RecordConsumer consumer;
  private PlainColumns plain;
  private int group;
  private long rows;
  private long first;
  private boolean closed;

  /** {@code source} has the path of the older file, its id, and the columns to copy. */
  public CopyingWriter(String path, Configuration conf, StructType schema, Object[] source)
      throws IOException {
    this.path = path;
    this.conf = conf;
    id = Long.parseLong((String) source[1]);
    this.schema = schema;
    file = schema.length();
    row = ChangeWriter.projected(schema);
    InputFile input = HadoopInputFile.fromPath(new Path((String) source[0]), conf);
    old = ParquetFileReader.open(input);
    groups = old.getRowGroups();
    org.apache.parquet.hadoop.api.WriteSupport.WriteContext context = support.init(conf);
    made = context.getSchema();
    meaning.putAll(old.getFileMetaData().getKeyValueMetaData());
    meaning.remove(ROW_METADATA);
    HashSet kept = new HashSet();
    for (int i = 2; i < source.length; i++) {
      kept.add(source[i]);
    }
    MessageType before = old.getFileMetaData().getSchema();
    ArrayList fields = new ArrayList();
    for (int i = 0; i < before.getFieldCount(); i++) {
      Type field = before.getType(i);
      if (kept.remove(field.getName())) {
        fields.add(field);
        copied.add(field.getName());
      }
    }
    if (!kept.isEmpty()) {
      throw new IOException(source[0] + " has no column " + kept.iterator().next());
    }
    fields.addAll(made.getFields());
    ParquetProperties.Builder settings = ParquetProperties.builder()
        .withPageSize(ParquetOutputFormat.getPageSize(conf))
        .withDictionaryPageSize(ParquetOutputFormat.getDictionaryPageSize(conf))
        .withDictionaryEncoding(ParquetOutputFormat.getEnableDictionary(conf))
        .withWriterVersion(ParquetOutputFormat.getWriterVersion(conf))
        .withAllocator(new HeapByteBufferAllocator());
    properties = withColumns(settings, conf);
    codec = CompressionCodecName.fromConf(conf.get("parquet.compression", "SNAPPY"));
    codecs = new CodecFactory(conf, properties.getPageSizeThreshold());
    bytes = chunks(new Path((String) source[0]), conf, input);
    composed = composed(new Path((String) source[0]));
    chunks = composed == null ? bytes : composed.unread();
    writer = new ParquetFileWriter(
        composed == null ? HadoopOutputFile.fromPath(new Path(path), conf) : composed,
        new MessageType(before.getName(), fields), ParquetFileWriter.Mode.CREATE,
        ParquetOutputFormat.getLongBlockSize(conf), ParquetWriter.MAX_PADDING_SIZE_DEFAULT,
        properties.getColumnIndexTruncateLength(), Integer.MAX_VALUE,
        properties.getPageWriteChecksumEnabled());
    writer.start();
    begin();
  }

  /** What Parquet reads for its own writer: settings of columns, whose keys end with a path. */
  private static ParquetProperties withColumns(ParquetProperties.Builder to, Configuration conf) {
    to.withAdaptiveBloomFilterEnabled(true);
    for (Map.Entry entry : conf) {
      String[] key = ((String) entry.getKey()).split("#", 2);
      String value = (String) entry.getValue();
      if (key.length == 2 && key[0].equals(ParquetOutputFormat.ENABLE_DICTIONARY)) {
        to.withDictionaryEncoding(key[1], Boolean.parseBoolean(value));
      } else if (key[0].equals(ParquetOutputFormat.BLOOM_FILTER_CANDIDATES_NUMBER)) {
        to.withBloomFilterEnabled(key[1], true);
        to.withBloomFilterCandidatesNumber(key[1], Integer.parseInt(value));
      }
    }
    return to.build();
  }

  /** The bytes of the older file; of a local one without Hadoop's sums: pages keep their own. */
  private static SeekableInputStream chunks(Path path, Configuration conf, InputFile input)
      throws IOException {
    FileSystem files = path.getFileSystem(conf);
    return files instanceof LocalFileSystem
        ? HadoopStreams.wrap(((LocalFileSystem) files).getRawFileSystem().open(path))
        : input.newStream();
  }

  /** The new columns of rows to write. */
  public static StructType written(StructType rows) {
    return ChangeWriter.first(rows, rows.length() - 2);
  }

  public void write(InternalRow given) {
    if (given.getLong(file) != id || given.getLong(file + 1) != first + rows) {
      throw new IllegalStateException("row " + (first + rows) + " of file " + id
          + " comes as row " + given.getLong(file + 1) + " of file " + given.getLong(file));
    }
    if (plain == null) {
      row.project(given);
      support.write(row);
    } else {
      plain.write(given);
    }
    rows++;
    if (rows == count()) {
      try {
        end();
        first += rows;
        rows = 0;
        group++;
        begin();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    boolean ended = false;
    try {
      try {
        if (group < groups.size()) {
          throw new IOException(path + " got " + (first + rows) + " rows, fewer than the older file");
        }
        writer.end(meaning);
        if (composed != null) {
          composed.complete();
          ended = true;
        }
      } finally {
        if (composed != null && !ended) {
          composed.abort();
        }
        codecs.release();
        bytes.close();
        old.close();
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  public String path() {
    return path;
  }

  /** The bytes that were written. */
  public long size() throws IOException {
    return writer.getPos();
  }

  public ParquetMetadata footer() {
    return writer.getFooter();
  }

  /** The new file as one that the store copies in parts; null if it does not. */
  private ComposedFile composed(Path from) throws IOException {
    long size = 0;
    for (BlockMetaData each : groups) {
      for (ColumnChunkMetaData chunk : each.getColumns()) {
        size += isCopied(chunk) ? chunk.getTotalSize() : 0;
      }
    }
    return ComposedFile.of(from, bytes, size, path, conf);
  }

  private boolean isCopied(ColumnChunkMetaData chunk) {
    return copied.contains(chunk.getPath().toArray()[0]);
  }

  private long count() {
    return ((BlockMetaData) groups.get(group)).getRowCount();
  }

  /** Begin a row group. Files of Shelduck have none without rows. */
  private void begin() throws IOException {
    pages = null;
    if (group == groups.size()) {
      return;
    }
    pages = new ColumnChunkPageWriteStore(codecs.getCompressor(codec), made,
        properties.getAllocator(), properties.getColumnIndexTruncateLength());
    columns = properties.newColumnWriteStore(made, pages, pages);
    if (PlainColumns.are(schema)) {
      plain = new PlainColumns(schema, made, columns);
      return;
    }
    consumer = new ColumnIOFactory(false).getColumnIO(made).getRecordWriter(columns);
    support.prepareForWrite(consumer);
  }

  private void end() throws IOException {
    if (consumer != null) {
      consumer.flush();
    }
    writer.startBlock(rows);
    for (ColumnChunkMetaData chunk : ((BlockMetaData) groups.get(group)).getColumns()) {
      if (isCopied(chunk)) {
        ColumnDescriptor column = old.getFileMetaData().getSchema()
            .getColumnDescription(chunk.getPath().toArray());
        if (composed != null) {
          composed.copy(chunk.getStartingPos(), chunk.getTotalSize());
        }
        writer.appendColumnChunk(column, chunks, chunk, old.readBloomFilter(chunk),
            old.readColumnIndex(chunk), old.readOffsetIndex(chunk));
      }
    }
    if (composed != null) {
      composed.add();
    }
    columns.flush();
    pages.flushToFileWriter(writer);
    columns.close();
    pages.close();
    writer.endBlock();
  }

  /** Makes the {@link CopyingWriter} of each task, which copies one file. */
  public static final class Factory extends ChangeWriter.Factory {
    /** {@code schema} are the new columns. */
    public Factory(OutputWriterFactory factory, StructType schema) {
      super(factory, schema);
    }

    public OutputWriter newInstance(String path, StructType rows, TaskAttemptContext context) {
      Configuration conf = context.getConfiguration();
      // Raw: a plain get would read ${...} in a name as a variable.
      String sources = conf.getRaw(CopyingWriter.OPTION);
      int task = context.getTaskAttemptID().getTaskID().getId();
      try {
        return new CopyingWriter(path, conf, schema, TextRows.row(sources, task));
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  /**
   * Columns of numbers and booleans, each of whose values goes straight into its column. For Spark's own
   * writer a value is a field of a record, which takes several calls; the columns get the same ones.
   */
  public static final class PlainColumns {
    private static final int OTHER = 0;
    private static final int INT = 1;
    private static final int LONG = 2;
    private static final int FLOAT = 3;
    private static final int DOUBLE = 4;
    private static final int BOOLEAN = 5;
    private static final int BYTE = 6;
    private static final int SHORT = 7;

    private final ColumnWriteStore store;
    private final ColumnWriter[] columns;
    private final int[] kinds;
    private final int[] levels;

    /** The first columns of rows are those of {@code schema}, which is {@code made} in Parquet. */
    public PlainColumns(StructType schema, MessageType made, ColumnWriteStore store) {
      this.store = store;
      columns = new ColumnWriter[schema.length()];
      kinds = new int[columns.length];
      levels = new int[columns.length];
      for (int i = 0; i < columns.length; i++) {
        ColumnDescriptor column = (ColumnDescriptor) made.getColumns().get(i);
        columns[i] = store.getColumnWriter(column);
        kinds[i] = kind(schema.fields()[i].dataType());
        levels[i] = column.getMaxDefinitionLevel();
      }
    }

    /** Whether all columns are such ones. */
    public static boolean are(StructType schema) {
      for (int i = 0; i < schema.length(); i++) {
        if (kind(schema.fields()[i].dataType()) == OTHER) {
          return false;
        }
      }
      return true;
    }

    private static int kind(DataType type) {
      return type instanceof IntegerType ? INT
          : type instanceof LongType ? LONG
          : type instanceof FloatType ? FLOAT
          : type instanceof DoubleType ? DOUBLE
          : type instanceof BooleanType ? BOOLEAN
          : type instanceof ByteType ? BYTE
          : type instanceof ShortType ? SHORT
          : OTHER;
    }

    public void write(InternalRow row) {
      for (int i = 0; i < columns.length; i++) {
        ColumnWriter column = columns[i];
        int level = levels[i];
        if (row.isNullAt(i)) {
          if (level == 0) {
            throw new IllegalStateException("a value is NULL in a column that is NOT NULL");
          }
          column.writeNull(0, 0);
          continue;
        }
        switch (kinds[i]) {
          case INT:
            column.write(row.getInt(i), 0, level);
            break;
          case LONG:
            column.write(row.getLong(i), 0, level);
            break;
          case FLOAT:
            column.write(row.getFloat(i), 0, level);
            break;
          case DOUBLE:
            column.write(row.getDouble(i), 0, level);
            break;
          case BOOLEAN:
            column.write(row.getBoolean(i), 0, level);
            break;
          case BYTE:
            column.write((int) row.getByte(i), 0, level);
            break;
          default:
            column.write((int) row.getShort(i), 0, level);
        }
      }
      store.endRecord();
    }
  }
}
