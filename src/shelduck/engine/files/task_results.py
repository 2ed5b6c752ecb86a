"""The files of a write: its results, and those of tasks that failed, which are deleted.

Tasks write below the directory of the write, or, into partitions, where files stay. There, the
names of files begin with that of the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from shelduck.engine.bridge.codec import Report
from shelduck.engine.files.footers import Footer, parsed_footer, read_footers
from shelduck.engine.files.storage import (
    Listed,
    delete_directory,
    delete_files,
    in_threads,
    list_data_files,
    list_of_write,
)
from shelduck.errors import CorruptLake
from shelduck.model.files.place import SealedPath, place_below


@dataclass(frozen=True, slots=True)
class Results:
    """Files below a directory, by path, and what their writers reported, by name."""

    directory: str
    files: tuple[Listed, ...]
    reports: Mapping[str, Report]

    def with_footers(self, spark: SparkSession) -> Iterator[tuple[Listed, Footer]]:
        """Yield each file with its footer, which is read if nobody reported it."""
        told = [
            self.reports.get(file.name) or self.reports.get(file.base_name) for file in self.files
        ]
        known = [None if report is None else report.footer for report in told]
        if any(content is None for content in known):
            footers = read_footers(spark, self.directory, self.files)
        else:
            footers = (parsed_footer(content) for content in known if content is not None)
            if any(report is not None and report.key is not None for report in told):
                # In the file, the footer is encrypted, and has another length.
                footers = (replace(footer, size=None) for footer in footers)
        return zip(self.files, footers, strict=True)

    def working(self, file: Listed) -> str:
        """Return the directories in which Spark puts a file below that of its write."""
        told = self.reports.get(file.name)
        return file.name.rpartition("/")[0] if told is None else told.working


def results(place: str, reports: Mapping[str, Report] | None) -> Results:
    """Return the results of a write into the directory ``place``, and delete other files there.

    ``reports`` are those of `FileWriter.save`; without them, every file is a result. Raises
    CorruptLake if a reported file is not there.
    """
    directory = f"{place}/"
    listed = list_data_files(place)
    if reports is None:
        return Results(directory, tuple(listed), {})
    # A task that failed or ran twice may leave files that nobody reported.
    delete_files(place_below(directory, f.name) for f in listed if f.base_name not in reports)
    found = tuple(file for file in listed if file.base_name in reports)
    lost = sorted(reports.keys() - {file.base_name for file in found})
    if lost:
        raise CorruptLake(
            f"Spark wrote {lost[0]} into {place}, but it is not there; write again, and look for"
            " what deletes files below the lake's data path"
        )
    files = tuple(_sealed(f, key) if (key := reports[f.base_name].key) else f for f in found)
    return Results(directory, files, reports)


def placed_results(root: str, write: str, reports: Mapping[str, Report]) -> Results:
    """Return the results of a write into the partitions of a table, whose directory is ``root``.

    Nothing is listed, unless a task ran again: then files of its first attempt are looked for. Who
    commits the files looks whether they are there.
    """
    if any(report.is_repeated for report in reports.values()):
        _delete_of_write(root, write, reports, but=reports)
    found = (Listed(name, reports[name].size) for name in sorted(reports))
    files = tuple(_sealed(f, key) if (key := reports[f.name].key) else f for f in found)
    return Results(root, files, reports)


def _sealed(file: Listed, key: str) -> Listed:
    return replace(file, name=SealedPath(file.name, key))


def delete_write(root: str, write: str, reports: Mapping[str, Report]) -> None:
    """Delete the files of a write that failed, in its directory and in those of partitions.

    Tasks that fail delete what they began, and ``reports`` name the directories of the others. What
    a lost executor wrote elsewhere is left to remove_orphans.
    """
    delete_directory(place_below(root, write))
    _delete_of_write(root, write, reports)


def _delete_of_write(
    root: str, write: str, reports: Mapping[str, Report], but: Mapping[str, Report] | None = None
) -> None:
    """Delete the files of a write in the directories of partitions that reports name."""
    directories = {name.rpartition("/")[0] + "/" for name, told in reports.items() if told.working}
    found = in_threads(
        lambda below: [below + n for n in list_of_write(root + below, write)], directories
    )
    names = {name for some in found for name in some} - (but or {}).keys()
    delete_files(place_below(root, name) for name in names)
