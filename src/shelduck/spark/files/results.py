"""The files that a write left in its directory: its results, and not those of tasks that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from shelduck.errors import CorruptLake
from shelduck.model.files.place import place_below
from shelduck.spark.files.footers import Footer, parsed_footer, read_footers
from shelduck.spark.files.storage import Listed, delete_files, list_data_files

Reports = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Results:
    """Files below a directory, by path, and the footers that their writers reported, by name."""

    directory: str
    files: tuple[Listed, ...]
    footers: Reports

    def with_footers(self, spark: SparkSession) -> Iterator[tuple[Listed, Footer]]:
        """Yield each file with its footer, which is read if nobody reported it."""
        known = [self.footers.get(file.base_name) for file in self.files]
        if any(content is None for content in known):
            footers = read_footers(spark, self.directory, self.files)
        else:
            footers = (parsed_footer(content) for content in known if content is not None)
        return zip(self.files, footers, strict=True)


def results(place: str, reports: Reports | None) -> Results:
    """Return the results of a write into the directory ``place``, and delete other files there.

    ``reports`` are those of `Bridge.save`; without them, every file is a result. Raises CorruptLake
    if a reported file is not there.
    """
    directory = f"{place}/"
    listed = list_data_files(place)
    if reports is None:
        return Results(directory, tuple(listed), {})
    # A task that failed or ran twice leaves files that nobody reported.
    delete_files(place_below(directory, f.name) for f in listed if f.base_name not in reports)
    found = tuple(file for file in listed if file.base_name in reports)
    lost = sorted(reports.keys() - {file.base_name for file in found})
    if lost:
        raise CorruptLake(
            f"Spark wrote {lost[0]} into {place}, but it is not there; write again, and look for"
            " what deletes files below the lake's data path"
        )
    return Results(directory, found, reports)
