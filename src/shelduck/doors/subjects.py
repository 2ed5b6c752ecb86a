"""The subjects that take part in calls of the core, each with its feature; doors import this."""

from __future__ import annotations

from shelduck.keys.key_draft import KeyDraft
from shelduck.keys.unique_keys import rules_of, settled
from shelduck.lake.unit import COMPLETING
from shelduck.model.tables.rollup import refuse_rollup
from shelduck.model.tables.table_version import Feature
from shelduck.model.tables.view import refuse_materialized
from shelduck.rollups.following import chooser_of, stage_followed
from shelduck.write.changes.flush_rows import with_past
from shelduck.write.hooks import Hooks, put_in

put_in(Feature.KEYS, Hooks(settled=settled, row_rules=rules_of, shape_rules=KeyDraft.of))
put_in(Feature.IS_ROLLUP, Hooks(refuse=refuse_rollup))
put_in(Feature.MATERIALIZED, Hooks(refuse=refuse_materialized))
put_in(Feature.CONSTRAINTS, Hooks())
put_in(Feature.COMPUTED, Hooks())
put_in(Feature.HAS_ROLLUPS, Hooks(stage_rows=stage_followed, chooser=chooser_of))
COMPLETING.append(with_past)
