SHELL := /bin/bash
.DEFAULT_GOAL := help

# Python that makes the environments, and the Spark that each of them holds.
BASE_PYTHON := $(shell command -v python3.11 || command -v python3)
VENV := .venv
VENVDBT := .venvdbt
# What runs jobs of others: Airflow, Dagster, dlt, SQLMesh.
VENVTOOLS := .venvorchestration
# Older versions of Spark: Shelduck is tested on each in an environment of its own.
OLDER := 40 41
PY := $(VENV)/bin/python
PY41 := .venv41/bin/python
PYTEST := -m pytest -n 2 --dist worksteal
# Each test's seconds of CPU go below build/recorded.
RECORD := SHELDUCK_RECORD=build/recorded
RECORDING := -p tests.support.recording

# Spark's classes, parsed once: each JVM of the tests that maps them saves half of its start.
ARCHIVE := build/spark.jsa

DBT := integrations/dbt
# Lets another environment find the packages of .venv behind its own.
with_packages_of_venv = $(VENV)/bin/python -c \
  'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
  > "$$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zz-shelduck.pth"

# Tests without a JVM, and where they are; tests/conftest.py marks them `plain`.
PLAIN := $(addprefix tests/,catalog simulation unit web)
FAST := not slow and not soak and not connect and not browser and not s3

# What runs the code of README.md, of docs and of examples.
DOCUMENTS := $(addprefix tests/stories/test_,documents.py reference.py messages.py site.py examples.py backup.py smoke.py)
# Tests of many seeds: a share takes a stretch of them, `make soak` takes all (tests/support/lengths.py).
SEEDS := tests/catalog/branches/test_branch_laws.py tests/catalog/test_view_laws.py tests/spark/branches/test_programs_with_spark.py \
  tests/spark/branches/test_programs_of_keys.py tests/spark/streams/test_carry_laws.py tests/spark/views/test_materialized_laws.py tests/concurrency/test_killed_carries.py \
  tests/catalog/test_broken_catalogs.py \
  tests/spark/failures/test_broken_files.py tests/simulation \
  tests/spark/attached/test_sparks_grammar.py tests/unit/test_hostile_statements.py \
  tests/differential/test_deletes_in_turns.py tests/spark/upkeep/test_maintain.py \
  tests/differential/test_widening_matrix.py
# Tests of many processes: a share takes one database, `make soak` takes all.
CROWDS := $(addprefix tests/concurrency/test_,appends.py key_loads.py mix.py shared_job.py storm.py streams.py)
# Screenshots that the documents show.
PICTURES := $(addprefix build/pictures/,story.png lake-1600-light.png files-1600-light.png \
  jobs-1600-light.png story-1600-dark.png story-360-light.png)

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --custom-compile-command "make lock"
COMPILE := $(LOCK) pyproject.toml --all-extras

# Each process would compile src again, and each worker rewrite the assertions of all tests.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo check test test-main test-beside test-plain test-shard test-all cost cover mutants browser chromium soak jars jars-s3 bench bench-peers docs reference coverage dist lock clean java

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready  ## build .venv from requirements.lock

demo: setup java  ## run the guided tour on a throw-away lake
	$(VENV)/bin/shelduck demo

check: setup  ## lint, format, types and layers: no Spark, under a minute
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PY) -m tests.support.budgets
	$(PY) -m tests.support.java_lint

test: setup java  ## the fast tests
	@$(MAKE) --no-print-directory jars-s3 chromium $(ARCHIVE)
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target test-main test-beside test-plain

test-main:
	$(PY) $(PYTEST) -m "$(FAST) and not plain"

# What needs a pytest of its own, and then what needs no JVM, runs beside the others, where a core idles.
test-beside:
	$(PY) -m pytest tests/stories/test_attach_connect.py -m "connect and not slow"
	$(PY) -m pytest tests/object_store -m "s3 and not slow"
	$(PY) -m pytest tests/web -m "browser and not slow"

test-plain:
	$(PY) -m pytest $(PLAIN) -m "$(FAST) and plain"

test-shard: setup java $(ARCHIVE)  ## the N-th share of the slow tests, such as N=3/12, or all: N="1/12 2/12 …"
	rm -rf build/recorded
	$(RECORD) SHELDUCK_RECORD_LINES=0 $(PY) -m tests.support.shards $(N); \
	  failed=$$?; $(PY) -m tests.support.cover build/recorded; exit $$failed

# Seconds are written at the end: they say where shares are cut.
test-all: setup java  ## every test: the fast ones, and all twelve shares of the slow ones
	@$(MAKE) --no-print-directory --keep-going test test-shard N="1/12 2/12 3/12 4/12 5/12 6/12 7/12 8/12 9/12 10/12 11/12 12/12"

cost: setup java $(ARCHIVE)  ## run the fast tests once more, and print what each folder costs beside a timed loop
	rm -rf build/recorded
	$(RECORD) SHELDUCK_RECORD_LINES=0 $(PY) $(PYTEST) $(RECORDING) -m "$(FAST)"
	$(PY) -m tests.support.cost build/recorded

cover: setup java $(ARCHIVE)  ## run the fast tests once more with coverage, and choose those that stay fast
	rm -rf build/recorded
	SHELDUCK_COVER=1 $(RECORD) $(PY) $(PYTEST) $(RECORDING)
	$(PY) -m tests.support.cover build/recorded

mutants: setup java  ## change the code in N=100 places, and count what the fast tests and all tests find
	$(PY) -m tests.support.mutants $(or $(N),100) $(or $(SEED),1)

browser: setup chromium  ## test the page in a browser, and write docs/pictures
	rm -rf build/pictures
	SHELDUCK_PICTURES=build/pictures $(PY) -m pytest tests/web -m browser
	mkdir -p docs/pictures
	cp $(PICTURES) docs/pictures

soak: setup java  ## long stories, the laws over many programs, all pairs on PostgreSQL, for hours
	SHELDUCK_TEST_LAWS=soak $(PY) $(PYTEST) -m "soak or slow" tests/stories/test_mirror.py tests/properties \
	  tests/catalog/conflicts tests/door/test_day_at_a_door.py $(SEEDS)
	SHELDUCK_TEST_LAWS=soak $(PY) -m pytest -m "soak or slow" -s $(CROWDS)

jars: setup java  ## fetch the JARs of jars.lock, which some slow tests give to Spark
	$(PY) -m tests.support.jars

$(VENVDBT)/.ready: requirements-dbt.lock $(VENV)/.ready $(shell find $(DBT)/dbt -type f)
	test -d $(VENVDBT) || "$(BASE_PYTHON)" -m venv $(VENVDBT)
	$(VENVDBT)/bin/python -m pip install --quiet --requirement $<
	$(VENVDBT)/bin/python -m pip install --quiet --no-deps --force-reinstall ./$(DBT)
	$(call with_packages_of_venv,$(VENVDBT))
	@touch $@

$(VENVTOOLS)/.ready: requirements-orchestration.lock $(VENV)/.ready
	test -d $(VENVTOOLS) || "$(BASE_PYTHON)" -m venv $(VENVTOOLS)
	$(VENVTOOLS)/bin/python -m pip install --quiet --requirement $<
	$(call with_packages_of_venv,$(VENVTOOLS))
	@touch $@

jars-s3: setup java
	$(PY) -m tests.support.jars s3

# A JVM that cannot write the file loads its classes as ever.
$(ARCHIVE): $(VENV)/.ready
	-$(PY) -m tests.support.class_archive $@

bench: setup java  ## measure, and print the table of results
	$(PY) -m benchmarks

bench-peers: setup java jars .venv41/.ready  ## measure every verb beside Delta Lake and Apache Iceberg
	$(PY41) -m benchmarks peers more --keep

docs: setup java browser  ## run the code of README.md and of the guides, draw the pictures, and build the site
	$(PY) -m pytest -m "not cluster and not connect" $(DOCUMENTS)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build

reference: setup  ## write docs/reference/cli.md from what --help says
	$(PY) -m tests.support.cli_page

coverage: setup java  ## run the rows of docs/coverage, and write its pages
	$(PY) -m pytest tests/coverage --ignore tests/coverage/test_pages.py -m "" --write-pages

dist: setup  ## build the wheel and the source archive into dist/
	rm -rf dist
	$(PY) -m hatchling build

lock:  ## resolve the versions anew (needs uv)
	$(COMPILE) --upgrade --output-file requirements.lock
	set -e; for spark in $(OLDER:%=requirements-spark%); do \
	  cp requirements.lock $$spark.lock; \
	  $(COMPILE) --constraint $$spark.in --output-file $$spark.lock; \
	done
	$(LOCK) requirements-dbt.in --no-strip-extras --output-file requirements-dbt.lock
	$(LOCK) requirements-orchestration.in --output-file requirements-orchestration.lock

clean:  ## remove environments, caches and what runs left behind
	rm -rf $(VENV) $(OLDER:%=.venv%) $(VENVDBT) $(VENVTOOLS) .jars build dist site spark-warehouse metastore_db artifacts derby.log
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

chromium:
	@if command -v chromium >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then \
	  echo "No chromium found. The tests of the page need it: put chromium on your path, or run" \
	    "apt-get install chromium as root." >&2; exit 1; \
	fi; \
	apt-get update --quiet=2 && DEBIAN_FRONTEND=noninteractive \
	  apt-get install --quiet=2 --yes --no-install-recommends chromium fonts-inter

java:
	@bin=$${JAVA_HOME:+$$JAVA_HOME/bin/}java; \
	version=$$("$$bin" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	if [ -z "$$version" ]; then \
	  echo "No Java found. Spark needs Java 17 or newer: install it, or set JAVA_HOME." >&2; exit 1; \
	elif [ "$$version" -lt 17 ]; then \
	  echo "Java $$version found. Spark needs Java 17 or newer: set JAVA_HOME to one." >&2; exit 1; \
	fi

$(VENV)/.ready: requirements.lock pyproject.toml
$(OLDER:%=.venv%/.ready): .venv%/.ready: requirements-spark%.lock pyproject.toml

$(VENV)/.ready $(OLDER:%=.venv%/.ready):
	@"$(BASE_PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Shelduck needs Python 3.11 or newer." >&2; exit 1; }
	"$(BASE_PYTHON)" -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $<
	$(@D)/bin/python -m pip install --quiet --no-deps --editable .
	@touch $@
