package shelduck.bridge.scan;

import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** Parquet files, of which a scan reads the dictionaries of one column: see {@link ReadDictionaries}. */
public class DictionaryFormat extends ParquetFileFormat {
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
    ArrayList types = new ArrayList();
    types.add(data.fields()[0].dataType());
    for (int i = 0; i < partition.length(); i++) {
      types.add(partition.fields()[i].dataType());
    }
    if (required.length() != 1) {
      throw new IllegalArgumentException("a scan of dictionaries reads one column");
    }
    return new ReadDictionaries((DataType[]) types.toArray(new DataType[types.size()]),
        Integer.parseInt((String) options.get(OPTION).get()),
        LakeParquet.table(options), LakeParquet.shared(session, conf));
  }
}
