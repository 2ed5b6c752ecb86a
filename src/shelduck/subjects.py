"""The subjects that take part in calls of the core, each with its feature; doors import this."""

from __future__ import annotations

from shelduck.model.tables.table_version import Feature
from shelduck.rollups.answering import chooser_of
from shelduck.rollups.following import stage_followed
from shelduck.work.hooks import Hooks, put_in

put_in(Feature.ROLLUPS, Hooks(stage_rows=stage_followed, chooser=chooser_of))
