"""A lake as a catalog of the user's own Spark session."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from shelduck.doors.attached.attached_catalog import AttachedLake
from shelduck.doors.attached.attached_table import AttachedTable
from shelduck.doors.attached.replaced_calls import (
    give_methods_back,
    replace_calls,
    replace_load,
    replace_method,
    replace_views,
)
from shelduck.doors.attached.source import LakeSources
from shelduck.doors.attached.takeover import SessionSql, Sql
from shelduck.doors.connect import NewLake, connect
from shelduck.doors.lake import Lake
from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.faults import forget_over_connect, tell_over_connect
from shelduck.engine.bridge.lake_catalog import (
    CLASS,
    forget_answer,
    put_catalog,
    remove_catalog,
    token_of,
)
from shelduck.engine.session import DataFrame, SparkSession, session_for
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound

_SETTING = "spark.sql.catalog."
_DEFAULT = "spark.sql.defaultCatalog"
_SPARKS = "spark_catalog"
_URI = re.compile(r"spark\.sql\.catalog\.([^.]+)\.uri")
NewSession = Callable[[SparkSession], SparkSession]
_sessions: dict[str, SessionSql] = {}
# What reads tables by format over Spark Connect, and the sessions that `register` was called for.
_sources: dict[str, LakeSources] = {}
_remote: weakref.WeakValueDictionary[str, SparkSession] = weakref.WeakValueDictionary()
_tokens: dict[tuple[str, str], tuple[str, str]] = {}


def attach(
    spark: SparkSession,
    name: str | None = None,
    url: str | None = None,
    data_path: str | None = None,
    *,
    default: bool = False,
    author: str | None = None,
    trust_views: bool = False,
    allow: Collection[str] | None = None,
    storage: Mapping[str, object] | None = None,
    ducklake_version: str | None = None,
    encrypted: bool = False,
) -> Lake:
    """Make a lake a catalog of a session: ``spark.sql("SELECT … FROM lake.main.events")``.

    ``spark.table``, ``df.writeTo`` and ``saveAsTable`` find its tables, too. Queries see the newest
    snapshot. The lake runs what Spark lacks (UPDATE, MERGE, ALTER TABLE, CALL …). Returns the lake,
    which `detach` closes.

    Args:
        spark: The session; nothing else in it is changed.
        name: What the catalog is called: ``lake``, or as the settings of the session say.
        url, data_path: As for `connect`; by default the session's settings
            ``spark.sql.catalog.NAME.uri`` and ``.data-path``.
        default: Whether names without a catalog mean this one (``USE name.main``).
        author, trust_views, allow, storage, ducklake_version, encrypted: As for `connect`.

    Raises:
        AlreadyExists: the session has a catalog of that name.
        InvalidRequest: no address is given; and what `connect` raises.
        Unsupported: ``default`` over Spark Connect, where only ``spark.sql`` finds the lake.
    """
    name = name or (_named_by_settings(spark) if url is None else "lake")
    _require_free(spark, name, default=default)
    where = _address(spark, name, url, data_path)
    found = connect(
        *where,
        spark,
        author=author,
        trust_views=trust_views,
        allow=allow,
        storage=storage,
        ducklake_version=ducklake_version,
        encrypted=encrypted,
    )
    _put(spark, name, found, default=default)
    return found


def _put(spark: SparkSession, name: str, found: Lake, *, default: bool) -> None:
    """Let a session find a lake by its name, or leave the session as it was."""
    key = name.lower()
    attached = attached_to(spark).lakes[key] = AttachedLake(found, spark)
    try:
        if (token := engine_for(spark).put_catalog(name, attached.answer)) is not None:
            _tokens[session_id(spark), key] = name, token
        _know_format(spark)
        _take_over(spark)
        if default:
            _use(spark, name)
    except BaseException:
        detach(spark, name)
        raise


def _require_free(spark: SparkSession, name: str, *, default: bool) -> None:
    known = attached_to(spark).lakes.get(name.lower())
    if known is not None and known.is_shared:
        # The session has it from the one that made it.
        detach(spark, name)
    if name.lower() in attached_to(spark).lakes or setting(spark, name) not in (None, CLASS):
        raise AlreadyExists(f"catalog {name!r} already exists in this session; detach it first")
    if default:
        engine_for(spark).require_current_catalog(name)


def register(spark: SparkSession) -> None:
    """Make ``format("shelduck")`` known to a session, for ``spark.read`` and ``spark.readStream``.

    The options are ``catalog``, the address of a lake or the name of an attached one, ``table``,
    and those of Delta Lake's and Iceberg's readers: ``versionAsOf``, ``timestampAsOf``,
    ``readChangeFeed``, ``startingVersion``, ``maxFilesPerTrigger`` … `attach` calls this too;
    calling it again changes nothing.
    """
    if not _know_format(spark):
        _remote[session_id(spark)] = spark


def _know_format(spark: SparkSession) -> bool:
    """Return whether Spark itself knows the format; if not, PySpark's ``load`` is replaced."""
    source = LakeSources(spark, attached_to(spark).lakes)
    if engine_for(spark).put_source(source.answer):
        return True
    _sources.setdefault(session_id(spark), source)
    replace_load(spark, _read)
    return False


def _read(spark: SparkSession, options: Mapping[str, str]) -> DataFrame | None:
    source = _sources.get(session_id(spark))
    return None if source is None else source.read(options)


def detach(spark: SparkSession, name: str = "lake") -> None:
    """Take a lake out of a session and close it.

    Args:
        spark: The session that has it.
        name: The catalog's name, as given to `attach`.

    Raises NotFound if no lake of that name is attached.
    """
    key = name.lower()
    session = attached_to(spark)
    found = session.lakes.pop(key, None)
    token = _tokens.pop((session_id(spark), key), None)
    if found is None and token is None:
        raise NotFound.named("catalog", name, list(session.lakes))
    if found is not None and not found.is_shared:
        same = [s.lakes.get(key) for s in _sessions.values()]
        for other in [lake for lake in same if lake is not None and lake.lake is found.lake]:
            detach(other.spark, name)
    if token is not None:
        _leave(spark, key)
        remove_catalog(spark, *token)
    elif not any(key in s.lakes for s in _sessions.values()):
        forget_over_connect(name)
    if found is not None:
        found.close()
    if not any(s.lakes for s in _sessions.values()):
        give_methods_back()
        for remote in list(_remote.values()):
            replace_load(remote, _read)


def _use(spark: SparkSession, name: str) -> None:
    """Let names without a catalog mean this one, in the batches of streams too.

    A stream runs them in a copy of the session, which begins with the default catalog.
    """
    spark.conf.set(_DEFAULT, name)
    spark.catalog.setCurrentCatalog(name)


def _leave(spark: SparkSession, key: str) -> None:
    if _is_default(spark, key):
        spark.conf.unset(_DEFAULT)
    if spark.catalog.currentCatalog().lower() == key:
        spark.catalog.setCurrentCatalog(_SPARKS)


def _new_session(original: NewSession) -> NewSession:
    def new_session(self: SparkSession) -> SparkSession:
        made = original(self)
        found = _sessions.get(session_id(self))
        for key in [] if found is None else list(found.lakes):
            share(self, made, key)
            if _is_default(self, key):
                _use(made, _tokens[session_id(made), key][0])
        return made

    return new_session


def share(spark: SparkSession, other: SparkSession, name: str) -> None:
    """Make a lake of one session a catalog of another, for as long as the first has it."""
    key = name.lower()
    name, _ = _tokens[session_id(spark), key]
    lake = attached_to(spark).lakes[key].lake
    shared = attached_to(other).lakes[key] = AttachedLake(lake, other, is_shared=True)
    _tokens[session_id(other), key] = name, put_catalog(other, name, shared.answer)
    _know_format(other)


def forget(spark: SparkSession) -> None:
    """Drop what is kept for a session to which lakes are shared; it may ask for them again."""
    found = _sessions.pop(session_id(spark), None)
    for key, lake in () if found is None else found.lakes.items():
        _, token = _tokens.pop((session_id(spark), key))
        forget_answer(spark, token)
        lake.close()


def _is_default(spark: SparkSession, key: str) -> bool:
    return str(spark.conf.get(_DEFAULT, _SPARKS)).lower() == key


def _take_over(spark: SparkSession) -> None:
    """Intercept the statements of all sessions of a class; Spark runs those without lakes."""
    replace_method(type(spark), "sql", _sql)
    if engine_for(spark).has_jvm:
        replace_calls(_table)
        replace_views(lambda session: _with_lakes(session) is not None)
        replace_method(type(spark), "newSession", _new_session)
    else:
        for name in attached_to(spark).lakes:
            tell_over_connect(name)
        for method, length in (("databaseExists", 2), ("tableExists", 3)):
            replace_method(type(spark.catalog), method, partial(_exists, length))


def _exists(length: int, original: Callable[..., bool]) -> Callable[..., bool]:
    """Return a call that finds what is in lakes by names of so many parts, over Spark Connect."""

    def exists(self: Any, name: str, *more: Any, **named: Any) -> bool:
        session = None if more or named else _sessions.get(session_id(self._sparkSession))
        found = None if session is None else session.has(name, length)
        return original(self, name, *more, **named) if found is None else found

    return exists


def _sql(original: Sql) -> Sql:
    def sql(
        self: SparkSession,
        sqlQuery: str,  # noqa: N803 - Spark's own name for it
        args: Any = None,
        **kwargs: Any,
    ) -> DataFrame:
        session = _with_lakes(self)
        if session is None:
            return original(self, sqlQuery, args, **kwargs)
        return session.run(original.__get__(self), sqlQuery, args, kwargs)

    return sql


def _table(spark: SparkSession, name: str) -> AttachedTable | None:
    session = _with_lakes(spark)
    return None if session is None else session.table(name)


def _with_lakes(spark: SparkSession) -> SessionSql | None:
    """Return what runs the statements of a session, None if it has no lake."""
    found = _sessions.get(session_id(spark)) or _session_of_stream(spark)
    return found if found is not None and found.lakes else None


def _session_of_stream(spark: SparkSession) -> SessionSql | None:
    """Return the same for batches of a stream, which run with a copy of its session's settings."""
    for (session, _), (name, token) in list(_tokens.items()):
        if token_of(spark, name) == token:
            return SessionSql(spark, _sessions[session].lakes)
    return None


def attached_to(spark: SparkSession) -> SessionSql:
    """Return the lakes of a session, and what it makes of statements."""
    return _sessions.setdefault(session_id(spark), SessionSql(spark))


def session_id(spark: SparkSession) -> str:
    """Return what tells sessions apart; several Python objects may be one session."""
    return engine_for(spark).session_id


def _address(
    spark: SparkSession, name: str, url: str | None, data_path: str | None
) -> tuple[str, str | None]:
    url = url or setting(spark, f"{name}.uri")
    if url is None:
        raise InvalidRequest(
            f"the address of lake {name!r} is missing; pass a url, or set {_SETTING}{name}.uri"
        )
    return url, data_path or setting(spark, f"{name}.data-path")


def _named_by_settings(spark: SparkSession) -> str:
    """Return the name of the only catalog that the session's settings give an address."""
    found = [m[1] for key in spark.conf.getAll if (m := _URI.fullmatch(key))]
    if len(found) != 1:
        listed = f" (it is set for {', '.join(sorted(found))})" if found else ""
        raise InvalidRequest(
            f"cannot tell which lake to attach; pass a name and a url, or set {_SETTING}NAME.uri"
            f" for exactly one catalog{listed}"
        )
    return found[0]


def setting(spark: SparkSession, name: str) -> str | None:
    """Return a setting of a catalog of a session: its class, or ``NAME.uri`` and the like."""
    return spark.conf.get(f"{_SETTING}{name}", None)


def session(
    url: str,
    data_path: str | None = None,
    *,
    name: str = "lake",
    config: Mapping[str, str] | None = None,
    storage: Mapping[str, object] | None = None,
    ducklake_version: str | None = None,
    encrypted: bool = False,
) -> SparkSession:
    """Return a Spark session with a lake attached and in use: ``spark.sql("SHOW TABLES")``.

    It is the running session where there is one, else a local one on all cores, without a web page.
    A second call for the same lake, such as that of a notebook's cell, returns it once more.

    Args:
        url: The address of the lake, as `connect` takes it.
        data_path: Where files go, needed to make a lake.
        name: What the catalog is called.
        config: Settings of a session that is made, by their names in Spark.
        storage: How to reach an object store, as `connect` takes it.
        ducklake_version, encrypted: What a lake that is made gets, as `connect` takes it.

    Raises what `attach` raises.
    """
    spark = session_for(config)
    made = NewLake(ducklake_version=ducklake_version, encrypted=encrypted)
    lakes, asked = attached_to(spark).lakes, (url, data_path, storage, made)
    known = lakes.get(name.lower())
    if known is not None and known.asked == asked:
        _use(spark, name)
        return spark
    attach(spark, name, url, data_path, default=True, storage=storage, **made)
    lakes[name.lower()].asked = asked
    return spark
