"""A DAG for Airflow 2.4 or newer: the schema files first, then the load, then the upkeep.

Airflow needs the commands `shelduck` and `spark-submit`, and the variables of lake.env.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator

PLACE = "/opt/lake"

with DAG(
    "lake",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - Airflow takes it as UTC
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=5)},
) as dag:
    # Light changes land at once; heavy ones are left to the workers. Run again, it does nothing.
    schema = BashOperator(task_id="schema", bash_command=f"shelduck apply {PLACE}/schema --yes")
    # A day lands once, so Airflow may retry it.
    load = BashOperator(
        task_id="load",
        bash_command=(
            f"spark-submit {PLACE}/nightly_load.py --day {{{{ ds }}}}"
            f" --files '{PLACE}/incoming/{{{{ ds }}}}/*.json'"
        ),
    )
    upkeep = BashOperator(task_id="upkeep", bash_command="shelduck sql 'CHECKPOINT'")
    schema >> load >> upkeep
