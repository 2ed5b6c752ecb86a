"""dbt on a Shelduck lake: what differs from dbt on Spark."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.shelduck.connections import ShelduckConnectionManager, ShelduckCredentials
from dbt.adapters.shelduck.impl import ShelduckAdapter
from dbt.include import shelduck

__all__ = ["Plugin", "ShelduckAdapter", "ShelduckConnectionManager", "ShelduckCredentials"]

Plugin = AdapterPlugin(
    adapter=ShelduckAdapter,
    credentials=ShelduckCredentials,
    include_path=shelduck.PACKAGE_PATH,
    dependencies=["spark"],
)
