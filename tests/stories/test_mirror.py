"""A table changes in every way, by three processes: what both engines read is what a mirror says.

Apache Kudu's randomised alter test (K40), with defaults, wider types, jobs, upkeep and kills. What
failed is told by its seed, its step and the last steps; how fast processes are is not in the seed.
"""

from __future__ import annotations

import sys

import pytest

from shelduck.ducklake.format import FORMATS
from tests.support.lengths import one_by_one
from tests.support.mirror_story import Story


def tell(seed, steps, url, folder, *, version, rows=76):
    sys.stdout.write(f"seed {seed}, DuckLake {version}\n")
    with Story(seed, url, folder, version) as story:
        story.run(steps, rows)
    return story


@pytest.mark.slow
@pytest.mark.parametrize("version", one_by_one([*FORMATS]))
def test_a_short_story_reads_as_its_mirror(postgres_url, tmp_path, version):
    tell(44, 60, postgres_url, tmp_path, version=version, rows=45)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_a_long_story_reads_as_its_mirror(postgres_url, tmp_path, seed):
    story = tell(seed, 1500, postgres_url, tmp_path, version=[*FORMATS][seed % 2])

    assert {"rows", "alter", "race", "crossing", "heavy", "upkeep", "kill"} <= set(story.counts)
