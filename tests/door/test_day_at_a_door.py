"""The statements of a day through a Thrift server: each works, or says why not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.support import door
from tests.support import everyday as day
from tests.support.lakes import Base

pytestmark = pytest.mark.slow

ENTRIES = [entry for entry in day.entries() if not entry.is_call]


def name_of(entry):
    return f"lake{entry.number:03}"


def here(entry):
    """The entry with the name of its own lake."""

    def named(text):
        return re.sub(r"\blake\b", name_of(entry), text)

    rows = [tuple(map(named, row)) for row in entry.rows]
    words = {"typed": named(entry.typed), "asked": named(entry.asked), "rows": rows}
    before, after = list(map(named, entry.before)), list(map(named, entry.after))
    return replace(entry, **words, before=before, after=after)


@pytest.fixture(scope="module")
def server(spark, tmp_path_factory):
    """A server with a lake for each entry."""
    folder = tmp_path_factory.mktemp("day")
    base = Base(folder, spark, day.BASE)
    conf = door.settings(spark, folder, "", "")
    conf = {key: value for key, value in conf.items() if ".catalog.lake" not in key}
    for entry in ENTRIES:
        own = folder / name_of(entry)
        own.mkdir()
        base.copy_with_files(own).close()
        catalog = f"spark.sql.catalog.{name_of(entry)}"
        conf[catalog] = "shelduck.bridge.LakeCatalog"
        conf[f"{catalog}.uri"] = f"sqlite:///{own}/lake.db"
        conf[f"{catalog}.data-path"] = f"{own}/data/"
    with door.thrift_server(folder / "server", conf) as found:
        # Hive closes the loader of the driver's JARs with the first session.
        first = found.connect(spark)
        first.ask("SELECT 1")
        first.java.close()
        yield found


@pytest.mark.parametrize("kind", sorted({entry.kind for entry in ENTRIES}))
def test_a_client_of_a_server_gets_the_same_answers(spark, server, kind):
    others = []
    for entry in map(here, ENTRIES):
        if entry.kind != kind:
            continue
        client = server.connect(spark)
        found = [client.ask(text).error for text in entry.before]
        typed = client.ask(entry.typed)
        found += [client.ask(text).error for text in entry.after]
        outcome = day.judged(entry, typed, client.ask)
        client.java.close()
        if any(found) or outcome.name != (day.REFUSED if entry.refused else day.WORKS):
            others.append((entry.id, found, outcome))
    assert others == []
