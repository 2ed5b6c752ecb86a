"""The statements of a day through a Thrift server: each works, or says why not."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import pytest

import shelduck
from tests.support import door
from tests.support import everyday as day
from tests.support.lakes import Base
from tests.support.lengths import turns

pytestmark = pytest.mark.slow

# A stretch in each round of the slow tests; all of them in `make soak`.
STRETCHES = turns([entry for entry in day.entries() if not entry.is_call], 60)


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
    for entry in (entry for stretch in STRETCHES for entry in stretch):
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


def asked(client, text):
    """The answer of the server; this process, too, puts errors about lakes into words."""
    try:
        return client.ask(text)
    except shelduck.ShelduckError as error:
        return door.Answer(error=str(error))


@pytest.mark.parametrize("stretch", STRETCHES, ids=lambda s: f"{s[0].number}-{s[-1].number}")
def test_a_client_of_a_server_gets_the_same_answers(spark, server, stretch):
    others = []
    for entry in map(here, stretch):
        client = server.connect(spark)
        ask = partial(asked, client)
        found = [ask(text).error for text in entry.before]
        typed = ask(entry.typed)
        found += [ask(text).error for text in entry.after]
        outcome = day.judged(entry, typed, ask)
        client.java.close()
        if any(found) or outcome.name != (day.REFUSED if entry.refused else day.WORKS):
            others.append((entry.id, found, outcome))
    assert others == []
