"""A catalog that names files of others on S3: what deletes, deletes the lake's dead files alone."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.support.attacked import ANYWHERE, STATEMENTS, AttackedOnS3, Attacks, clean_all
from tests.support.lakes import Base
from tests.support.s3 import BUCKET

pytestmark = pytest.mark.s3

ATTACKS: Attacks = {
    f"live, {scheme}": (
        lambda k, scheme=scheme: k.schedule(
            f"{scheme}{k.data.removeprefix('s3')}/main/t/{k.live}", relative=False
        ),
        "",
    )
    for scheme in ("s3a", "S3", "s3n")
}
ATTACKS |= {
    "another bucket": (
        lambda k: k.schedule(f"s3://{k.others}/{k.name}/victim/a.txt", relative=False),
        "",
    ),
    "another bucket, up": (
        lambda k: k.schedule(f"s3://{BUCKET}/../{k.others}/{k.name}/victim/a.txt", relative=False),
        "",
    ),
    "a table in another bucket": (
        lambda k: k.table_path(f"s3://{k.others}/{k.name}/victim/", relative=False),
        "",
    ),
    "a file in another bucket": (
        lambda k: k.file_row("data_file", f"s3://{k.others}/{k.name}/victim/a.txt", relative=False),
        "",
    ),
}
ATTACKS |= ANYWHERE


@pytest.fixture(scope="module")
def base(s3, spark, tmp_path_factory):
    s3.client.create_bucket(Bucket=AttackedOnS3.others)
    return Base(tmp_path_factory.mktemp("base"), spark, STATEMENTS, f"s3://{BUCKET}/base/")


# Other tests attack a lake of files with each of them.
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("attack", "told"), ATTACKS.values(), ids=ATTACKS)
def test_cleaning_leaves_the_objects_of_others_and_live_objects(base, s3, tmp_path, attack, told):
    attacked = AttackedOnS3(tmp_path, base, s3, uuid4().hex[:8])
    attack(attacked)
    clean_all(attacked, told)
