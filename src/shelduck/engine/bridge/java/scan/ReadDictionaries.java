package shelduck.bridge.scan;

import java.io.Serializable;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.Dictionary;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.AbstractIterator;
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
}
