"""A catalog that names files of others: what deletes, deletes the lake's dead files alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.attacked import ANYWHERE, STATEMENTS, AttackedOnDisk, Attacks, clean_all, told_by

__all__ = ["STATEMENTS"]


def linked(lake, name, target):
    Path(lake.data, "main", name).symlink_to(target, target_is_directory=True)


def through_a_link(lake):
    linked(lake, "w", lake.victim)
    lake.schedule("main/w/a.txt")


def alias_by_a_link(lake):
    linked(lake, "same", f"{lake.data}/main/t")
    lake.schedule(f"main/same/{lake.live}")


def write_is_a_link(lake):
    linked(lake, f"t/{lake.write}", lake.victim)


def table_is_a_link(lake):
    shutil.move(f"{lake.data}/main/t", lake.folder / "moved")
    linked(lake, "t", lake.victim)


ATTACKS: Attacks = ANYWHERE | {
    "live, URI": (lambda k: k.schedule(f"FILE://{k.data}/main/t/{k.live}", relative=False), ""),
    "a link": (through_a_link, "symbolic link"),
    "live, link": (alias_by_a_link, "symbolic link"),
    "a write is a link": (write_is_a_link, ""),
    "a table is a link": (table_is_a_link, ""),
}


@pytest.fixture
def attacked(base, tmp_path):
    return AttackedOnDisk(tmp_path, base)


every_attack = pytest.mark.parametrize(("attack", "told"), ATTACKS.values(), ids=ATTACKS)


@pytest.mark.sampled(18)
@every_attack
def test_cleaning_leaves_the_files_of_others_and_live_files(attacked, attack, told):
    attack(attacked)
    clean_all(attacked, told)


def fail(lake):
    lake.sql("INSERT INTO t SELECT id, raise_error('no') FROM range(99)")


def compact(lake):
    lake.table("t").compact()


def checkpoint(lake):
    lake.set_option("expire_older_than", "0 seconds")
    lake.set_option("delete_older_than", "0 seconds")
    lake.checkpoint()


@pytest.mark.slow
@every_attack
def test_writing_and_compacting_leave_the_files_of_others(attacked, attack, told):
    attack(attacked)
    acts = [fail, compact, checkpoint]
    with attacked.connect() as lake:
        told_by(lake, attacked, acts, may_fail=acts)
