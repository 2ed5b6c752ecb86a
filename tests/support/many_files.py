"""A table of very many files, of which only one exists."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text


def multiply(lake: Any, files: int) -> None:
    """Give the only file of a lake copies that do not exist, each with ids of its own.

    There are ``files`` files then.
    """
    copy = (
        "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path,"
        " path_is_relative, file_format, record_count, file_size_bytes, row_id_start)"
        " SELECT data_file_id + {n}, table_id, begin_snapshot, path || '{n}',"
        " path_is_relative, file_format, record_count, file_size_bytes,"
        " row_id_start + {n} * 10 FROM ducklake_data_file WHERE row_id_start = 0"
    )
    bounds = (
        "INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id,"
        " value_count, null_count, min_value, max_value)"
        " SELECT data_file_id, table_id, 1, 10, 0, row_id_start, row_id_start + 9"
        " FROM ducklake_data_file WHERE row_id_start > 0"
    )
    layouts = (
        "INSERT INTO shelduck_file_layout SELECT f.data_file_id, l.layout_id FROM"
        " ducklake_data_file AS f, shelduck_layout AS l WHERE f.row_id_start > 0"
    )
    with lake._state.store.write() as connection:
        for n in range(1, files):
            connection.execute(text(copy.format(n=n)))
        connection.execute(text(bounds))
        connection.execute(text(layouts))
        connection.execute(text("UPDATE ducklake_snapshot SET next_file_id = 100000"))
