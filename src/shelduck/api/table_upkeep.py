"""Maintenance of one table."""

from __future__ import annotations

from collections.abc import Collection

from shelduck.api.compaction import refuse_in_transaction, rewrite
from shelduck.api.handle import TableHandle
from shelduck.api.upkeep_results import Compacted
from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.options import option_text
from shelduck.operations.compact import Survey, survey
from shelduck.planning.compaction import MIN_FILES
from shelduck.spark.matching import Condition, Where
from shelduck.spark.unknown_columns import unknown_columns


class UpkeepVerbs(TableHandle):
    """Fewer and smaller files for the same rows. Readers and the change feed see no difference."""

    def compact(
        self,
        *,
        where: Condition | Where | None = None,
        target_file_size: int | str | None = None,
        min_files: int = MIN_FILES,
        max_files: int | None = None,
        dry_run: bool = False,
    ) -> Compacted:
        """Write small files together, partition by partition, with the table's newest columns.

        Rows keep their ids and their snapshots. Files with deleted rows are left to
        `rewrite_deletes`. Where older snapshots show what the new files have no more (a dropped
        column, another type), the old files stay until those snapshots expire. Each lot of about 8
        GB is one commit. Files that other commits change meanwhile are skipped.

        Args:
            where: Only files that hold a row for which this is true.
            target_file_size: Bytes, or a text such as ``"128MB"``; the option of that name when
                None. Files of three quarters of it are large enough.
            min_files: Fewer files than this are not worth a new one.
            max_files: The most files to write anew in this call.
            dry_run: Only tell what would be done.

        Raises:
            InvalidRequest: inside a transaction, or a size that cannot be read.
            Unsupported: a file cannot be read right.
        """
        refuse_in_transaction(self._unit, "compact()")
        if min_files < 1 or (max_files is not None and max_files < 1):
            raise InvalidRequest("min_files and max_files are whole numbers from 1 on")
        found = self._survey()
        target = found.table.options.target_file_size
        if target_file_size is not None:
            target = int(option_text("target_file_size", target_file_size)[1])
        among = None
        if where is not None:
            chosen = where if isinstance(where, Where) else Where(where)
            with unknown_columns():
                among = found.holding(self._state.spark, chosen)
        bins = found.small(target, min_files=min_files, max_files=max_files, among=among)
        return rewrite(self._state, found, bins, what="compact", dry_run=dry_run)

    def rewrite_deletes(
        self, delete_threshold: float | None = None, *, dry_run: bool = False
    ) -> Compacted:
        """Write files of which many rows are deleted anew, without those rows.

        Row ids stay. The old files stay for older snapshots until those expire.

        Args:
            delete_threshold: The part of a file's rows, 0 to 1, from which on it is written anew;
                the option rewrite_delete_threshold (0.95) when None. 0 takes every file with a
                deleted row.
            dry_run: Only tell what would be done.
        """
        refuse_in_transaction(self._unit, "rewrite_deletes()")
        found = self._survey()
        options = found.table.options
        threshold = options.rewrite_delete_threshold
        if delete_threshold is not None:
            threshold = float(option_text("rewrite_delete_threshold", delete_threshold)[1])
        bins = found.dead(threshold, options.target_file_size)
        return rewrite(self._state, found, bins, what="rewrite deletes of", dry_run=dry_run)

    def rewrite(self, files: Collection[int] | None = None, *, dry_run: bool = False) -> Compacted:
        """Write files anew with the columns, types and defaults of today.

        Rows keep their ids. The old files stay for older snapshots until those expire. Each lot of
        about 8 GB is one commit. Files that other commits change meanwhile are skipped.

        Args:
            files: Ids of data files, as `Table.files` tells them; all of them when None.
            dry_run: Only tell what would be done.

        Raises:
            NotFound: the newest snapshot has no file of such an id that can be written anew.
            InvalidRequest: inside a transaction.
            Unsupported: a column is of a type that Shelduck does not write.
        """
        refuse_in_transaction(self._unit, "rewrite()")
        found = self._survey()
        known = {f.id for f in found.rows.files}
        chosen = known if files is None else set(files)
        if chosen - known:
            raise NotFound(
                f"{found.table.full_name} has no data file {min(chosen - known)} whose rows have"
                " ids in its newest snapshot; look at its files",
                about="file",
            )
        bins = found.chosen(chosen, found.table.options.target_file_size)
        return rewrite(self._state, found, bins, what="rewrite", dry_run=dry_run, must=True)

    def _survey(self) -> Survey:
        return survey(self._state.store, self._version(), self._state.layouts)
