"""A process that streams files into a lake: run by test_streams.py, which kills it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import shelduck
from tests.support.spark import local_session


def main() -> None:
    """Bring every JSON file of a folder into main.t, one in each batch; end when told to."""
    url, folder, is_last = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "last"
    with (
        tempfile.TemporaryDirectory() as scratch,
        local_session(Path(scratch)) as spark,
        shelduck.connect(url, spark=spark) as lake,
    ):
        stream = (
            spark.readStream.schema("id BIGINT, file INT")
            .option("maxFilesPerTrigger", 1)
            .json(str(folder / "source"))
        )
        writer = stream.writeStream.foreachBatch(lake.table("t").sink()).option(
            "checkpointLocation", str(folder / "checkpoint")
        )
        if is_last:
            writer = writer.trigger(availableNow=True)
        query = writer.start()
        (folder / "ready").touch()
        query.awaitTermination()


if __name__ == "__main__":
    main()
