"""Writers append while another process alters the table: no row is lost, no write fails."""

from __future__ import annotations

import pytest

from tests.support.storm import storm


@pytest.mark.slow
def test_appends_land_however_often_the_table_is_altered(postgres_url, data_path, spark):
    found = storm("shelduck", postgres_url, data_path, spark=spark, writers=3, seconds=8, alters=30)

    assert found.failed == []
    assert found.altered > 10
    assert len(found.landed) == 3
