"""What a statement means, in the same words for Spark's plan and for our value.

A meaning is a tuple: the kind of statement, then what it names. Expressions are compared without
quotes, blanks and brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from shelduck.alter.statement import AlterTableStatement, RenameTableStatement, ReplaceColumns
from shelduck.materialized.statement import CreateMaterializedView
from shelduck.model.changes.constraining import AddConstraint, DropConstraint
from shelduck.model.changes.definition import Position
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.changes.storing import DropIndex
from shelduck.model.tables.partition import ResetSorting, SetSorting
from shelduck.model.tables.properties import SetProperties
from shelduck.objects.statement.create_table import CopyTableStatement, CreateTableStatement
from shelduck.objects.statement.macros import CreateMacroStatement, DropMacroStatement
from shelduck.objects.statement.schemas_and_tables import (
    CreateSchemaStatement,
    DropSchemaStatement,
    DropTableStatement,
    UseSchema,
)
from shelduck.objects.statement.show import (
    Describe,
    DescribeHistory,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
)
from shelduck.objects.statement.views import (
    AlterView,
    CreateViewStatement,
    DropViewStatement,
    RenameViewStatement,
    ShowViews,
)
from shelduck.write.merge.merge_clauses import When
from shelduck.write.statement.delete_and_update import Delete, DropPartitions, Truncate, Update
from shelduck.write.statement.insert_into import Insert
from shelduck.write.statement.merge_into import MergeStatement, WrittenClause
from shelduck.write.statement.row_sources import PartitionSpec

Meaning = tuple[Any, ...]

_TYPES = {
    "IntegerType": "int32",
    "LongType": "int64",
    "StringType": "varchar",
    "DecimalType(5,2)": "decimal(5,2)",
    "StructField(x,IntegerType,true)": "struct<x: int32>",
    "StructType(StructField(x,IntegerType,true))": "struct<x: int32>",
}


def sparks(plan: Any) -> Meaning:
    """Return the meaning of a plan that Spark's parser made."""
    kind = str(plan.getClass().getSimpleName())
    name, *parts = [p.strip() for p in plan.productIterator().mkString("\x1f").split("\x1f")]
    if kind not in _SPARKS:
        return (kind, name, *parts)
    return _SPARKS[kind](_name(name), name, parts)


def ours(statement: Any) -> Meaning:
    """Return the meaning of a statement that our parser made."""
    name = type(statement).__name__
    return _OURS.get(type(statement), lambda _: (name,))(statement)


def _name(text: str) -> tuple[str, ...]:
    """Return the name in a plan such as ``'UnresolvedTable [s, t], …``, or in a list."""
    found = re.search(r"(?:Unresolved\w+|^List) ?[\[(](.*?)[\])]", text)
    return tuple(found[1].split(", ")) if found and found[1] else ()


def _plain(expression: Any) -> str | None:
    text = getattr(expression, "text", expression)
    return None if text is None else re.sub(r"[\s'`()]", "", text).removeprefix("Some")


def _arguments(text: str) -> list[str]:
    """Return the arguments of ``name(a, b(c, d))`` as texts, of a list its elements."""
    found, depth = [""], 0
    for c in text[text.index("(") + 1 : text.rindex(")")]:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [part.strip() for part in found if part.strip()]


def _option(text: str) -> str | None:
    return None if text == "None" else text.removeprefix("Some(").removesuffix(")")


def _path(text: str) -> tuple[str, ...]:
    return tuple(_arguments(text)) if "(" in text else tuple(text.removeprefix("'").split("."))


def _place(text: str) -> str | None:
    return None if text == "None" else re.sub(r".*\((FIRST|AFTER .*?)\).*", r"\1", text)


def _default(text: str) -> str | None:
    found = re.search(r"sql='(.*)'", text)
    return found[1] if found else None


def _map(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.split(" -> ") for part in _arguments(text)]
    return tuple(sorted((key, value) for key, value in pairs))


def _altered(text: str) -> Iterator[Meaning]:
    for spec in _arguments(text):
        name, kind, null, comment, place, default, drops, uncomments = _arguments(spec)
        path = _path(name)
        if kind != "None":
            yield ("type", path, _TYPES[kind.removeprefix("Some(")[:-1]])
        if null != "None":
            yield ("null", path, null == "Some(true)")
        if comment != "None" or uncomments == "true":
            yield ("comment", path, _option(comment))
        if place != "None":
            yield ("move", path, _place(place))
        if default != "None" or drops == "true":
            yield ("default", path, _default(default))


def _added(text: str) -> Iterator[Meaning]:
    for column in _arguments(text):
        above, name, kind, null, comment, place, default = _arguments(column)
        path = (*(() if above == "None" else _path(above[5:-1])), name)
        facts = (_option(comment), _place(place), _default(default))
        yield ("add", path, _TYPES[kind], null == "true", *facts)


def _keys(text: str) -> list[str]:
    """Return our keys for a transform: days are counted from 1970, which takes three of them."""
    found = re.fullmatch(r"days\((.*)\)", text)
    if found is None:
        return [re.sub(r"identity\((.*)\)", r"\1", text)]
    return [f"{unit}({found[1]})" for unit in ("year", "month", "day")]


def _created(name: Meaning, parts: list[str], *, replaces: bool, query: bool) -> Meaning:
    columns = []
    if not query:
        for column in _arguments(parts.pop(0)):
            named, kind, null, comment, default, *_ = _arguments(column)
            columns.append(
                (named, _TYPES[kind], null == "true", _option(comment), _default(default))
            )
    keys = tuple(k for text in _arguments(parts[0]) for k in _keys(text))
    spec = _arguments(parts[2 if query else 1])
    properties = tuple(sorted(tuple(p[1:-1].split(",")) for p in spec[:-7] if p[0] == "("))
    comment = _option(spec[-4])
    exists = not replaces and parts[-2 if query else -1] == "true"
    return ("create", name, tuple(columns), keys, properties, comment, exists, replaces, query)


def _constraint(text: str) -> Meaning:
    """Return what ``primarykeyconstraint(a, b, name, table, characteristic)`` is."""
    *what, name, _, characteristic = _arguments(text)
    kind = text.partition("constraint(")[0]
    if kind == "check":
        what = [_plain(what[-1]) or ""]
    relies = characteristic.endswith("Some(true))")
    return ("constraint", kind, None if name == "null" else name, tuple(what), relies)


def _inserted(name: Meaning, _: str, parts: list[str]) -> Meaning:
    partition, columns, _, overwrite, _, by_name, where, evolution = parts
    keys = tuple((k, _option(v)) for k, v in _map(partition))
    found = re.search(r"insertreplacewhere\((.*)\)\)", where)
    condition = _plain(found[1]) if found else None
    listed = tuple(_arguments(columns))
    flags = (overwrite == "true", by_name == "true", evolution == "true")
    return ("insert", name, keys, listed, condition, *flags)


def _assigned(text: str) -> tuple[tuple[tuple[str, ...], str | None], ...]:
    pairs = [_arguments(part) for part in _arguments(text) if part.startswith("assignment")]
    return tuple((_path(_plain(path) or ""), _default_word(value)) for path, value in pairs)


def _default_word(text: str) -> str | None:
    return None if _plain(text) == "DEFAULT" else _plain(text)


def _alias(text: str) -> str | None:
    found = re.match(r"'?SubqueryAlias (\w+)", text)
    return found[1] if found and found[1] != _name(text)[-1:][0] else None


def _clause(text: str) -> Meaning:
    kind, condition = text.partition("(")[0], _arguments(text)[0]
    return (kind, _plain(_option(condition)), _assigned(text))


def _merged(name: Meaning, target: str, parts: list[str]) -> Meaning:
    source, condition, *clauses, evolution = parts
    told = [tuple(map(_clause, _arguments(clause))) for clause in clauses]
    names = (name, _alias(target), _name(source) if "Relation [" in source else ())
    return ("merge", *names, _plain(condition), *told, evolution == "true")


def _specs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the keys and values of PARTITION clauses."""
    return tuple(re.findall(r"\(([^(),]+),([^()]*?)\)", text))


def _our_specs(*specs: PartitionSpec) -> tuple[tuple[str, str], ...]:
    return tuple((key, value.strip("'")) for spec in specs for key, _, value in spec.values)


_SPARKS: dict[str, Callable[[Any, str, list[str]], Meaning]] = {
    "AlterColumns": lambda n, _, p: ("alter", n, tuple(_altered(p[0]))),
    "AddColumns": lambda n, _, p: ("alter", n, tuple(_added(p[0]))),
    "DropColumns": lambda n, _, p: (
        "alter",
        n,
        tuple(("drop", _path(c), p[1] == "true") for c in _arguments(p[0])),
    ),
    "AddConstraint": lambda n, _, p: ("alter", n, (_constraint(p[0]),)),
    "AddCheckConstraint": lambda n, _, p: ("alter", n, (_constraint(p[0]),)),
    "DropConstraint": lambda n, _, p: ("alter", n, (("drop constraint", p[0], p[1] == "true"),)),
    "RenameColumn": lambda n, _, p: ("alter", n, (("rename", _path(p[0]), p[1]),)),
    "DropIndex": lambda n, _, p: ("alter", n, (("drop index", p[0], p[1] == "true"),)),
    "SetTableProperties": lambda n, _, p: ("alter", n, (("set", _map(p[0])),)),
    "UnsetTableProperties": lambda n, _, p: (
        "alter",
        n,
        (("unset", tuple(_arguments(p[0])), p[1] == "true"),),
    ),
    "CommentOnTable": lambda n, _, p: ("alter", n, (("comment", (), p[0] or None),)),
    "CommentOnColumn": lambda n, _, p: ("alter", n, (("comment", _path(p[0]), p[1] or None),)),
    "AlterTableClusterBy": lambda n, _, p: (
        "alter",
        n,
        (("cluster", tuple(re.findall(r'\["(.*?)"\]', p[0]))),),
    ),
    "RenameTable": lambda n, _, p: ("rename", n, _name(p[0]), p[1] == "true"),
    "CreateTable": lambda n, _, p: _created(n, p, replaces=False, query=False),
    "CreateTableAsSelect": lambda n, _, p: _created(n, p, replaces=False, query=True),
    "ReplaceTable": lambda n, _, p: _created(n, p, replaces=True, query=False),
    "ReplaceTableAsSelect": lambda n, _, p: _created(n, p, replaces=True, query=True),
    "CreateTableLike": lambda n, _, p: ("like", n, _name(p[0]), p[5] == "true", p[4]),
    "CreateView": lambda n, _, p: (
        "view",
        n,
        tuple((c[1:-1].split(",")[0], _option(c[1:-1].split(",")[1])) for c in _arguments(p[0])),
        *(_option(p[1]), _option(p[4]), p[6] == "true", p[7] == "true"),
    ),
    # Spark's own are for pipelines: their columns have types, which ours have not.
    "CreateMaterializedViewAsSelect": lambda n, _, p: (
        *("materialized", n, _option(_arguments(next(t for t in p if "TableSpec" in t))[4])),
        *(p[-2], p[-1] == "true"),
    ),
    "AlterViewAs": lambda n, _, p: ("view as", n, p[0]),
    "DropTable": lambda n, _, p: ("drop table", n, p[0] == "true", p[1] == "true"),
    "DropView": lambda n, _, p: ("drop view", n, p[0] == "true"),
    "DropFunction": lambda n, _, p: ("drop function", n, p[0] == "true"),
    "CreateNamespace": lambda n, _, p: ("create schema", n, p[0] == "true"),
    "DropNamespace": lambda n, _, p: ("drop schema", n, p[0] == "true", p[1] == "true"),
    "SetCatalogAndNamespace": lambda n, *_: ("use", n),
    "SetNamespaceCommand": lambda n, *_: ("use", n),
    "ShowNamespacesCommand": lambda n, _, p: ("schemas", n, _option(p[0])),
    "ShowTables": lambda n, _, p: ("tables", n, _option(p[0])),
    "ShowViews": lambda n, _, p: ("views", n, _option(p[0])),
    "ShowTableProperties": lambda n, _, p: ("properties", n, _option(p[0])),
    "ShowColumns": lambda n, *_: ("columns", n),
    "ShowPartitions": lambda n, _, p: ("partitions", n, _specs(p[0])),
    "TruncatePartition": lambda n, _, p: ("drop partitions", n, _specs(p[0]), False),
    "DropPartitions": lambda n, _, p: ("drop partitions", n, _specs(p[0]), p[1] == "true"),
    "CreateUserDefinedFunction": lambda n, *_: ("create function", n),
    "ReplaceColumns": lambda n, _, p: (
        *("replace columns", n),
        tuple(re.findall(r"qualifiedcoltype\([^,]*, (\w+),", p[0])),
    ),
    "ShowCreateTable": lambda n, _, p: ("show create", n, p[0] == "true"),
    "DescribeRelation": lambda n, _, p: ("describe", n, None, p[0] == "true"),
    "DescribeColumn": lambda n, _, p: ("describe", n, _path(p[0]), p[1] == "true"),
    "TruncateTable": lambda n, *_: ("truncate", n),
    "InsertIntoStatement": _inserted,
    "DeleteFromTable": lambda n, t, p: (
        "delete",
        n,
        _alias(t),
        None if p[0] == "true" else _plain(p[0]),
    ),
    "UpdateTable": lambda n, t, p: ("update", n, _alias(t), _assigned(p[0]), _plain(_option(p[1]))),
    "MergeIntoTable": _merged,
}


def _our_place(position: Position | None) -> str | None:
    if position is None:
        return None
    return "FIRST" if position.after is None else f"AFTER {position.after}"


def _default_of(value: Any) -> str | None:
    return None if value is None else value.text


def _change(change: Any) -> Meaning:
    if isinstance(change, DropIndex):
        return ("drop index", change.name, change.if_exists)
    is_rule = isinstance(change, AddConstraint | DropConstraint)
    return _constrained(change) if is_rule else _changed(change)


def _changed(change: Any) -> Meaning:
    match change:
        case AddColumn(path, kind, default, nullable, comment, position, if_not_exists=False):
            facts = (comment, _our_place(position), _default_of(default))
            return ("add", path, str(kind), nullable, *facts)
        case DropColumn(path, if_exists, None):
            return ("drop", path, if_exists)
        case RenameColumn(path, new_name):
            return ("rename", path, new_name)
        case ChangeType(path, kind, None, False):
            return ("type", path, str(kind))
        case SetNullable(path, nullable):
            return ("null", path, nullable)
        case SetComment(path, comment):
            return ("comment", path, comment)
        case MoveColumn(path, position):
            return ("move", path, _our_place(position))
        case SetDefault(path, default):
            return ("default", path, _default_of(default))
        case SetProperties(values):
            return ("set", tuple(sorted(values)))
        case SetSorting(keys):
            # A name that DuckDB reserves is kept in quotes.
            return ("cluster", tuple(key.expression.strip('"') for key in keys))
        case ResetSorting():
            return ("cluster", ())
    return ("unset", change.keys, change.if_exists)


def _constrained(change: AddConstraint | DropConstraint) -> Meaning:
    if isinstance(change, DropConstraint):
        return ("drop constraint", change.name, change.if_exists)
    what = (*change.columns, *re.findall(r"\w+", change.references))
    if change.expression is not None:
        what = (_plain(change.expression.text) or "",)
    kind = change.kind.value.lower().replace(" ", "")
    return ("constraint", kind, change.name, what, change.relies)


def _our_create(s: CreateTableStatement) -> Meaning:
    columns = tuple(
        (c.name, str(c.type), c.nullable, c.comment, _default_of(c.default)) for c in s.columns
    )
    assert not s.keys
    assert not s.rollups
    keys = tuple(str(key) for key in s.partitioned_by)
    if s.sorted_by:
        # Spark's word for it.
        names = (key.expression.strip('"') for key in s.sorted_by)
        keys += (f"cluster_by({', '.join(names)})",)
    query = s.as_query is not None
    facts = (tuple(sorted(s.properties.items())), s.comment, s.if_not_exists, s.or_replace)
    return ("create", s.name.parts, columns, keys, *facts, query)


def _our_insert(s: Insert) -> Meaning:
    keys = tuple(sorted((p.column, _plain(p.value)) for p in s.partition))
    condition = None if s.replaced is None else _plain(s.replaced.condition)
    flags = (s.mode != "append", s.by_name, s.schema_evolution)
    return ("insert", s.name.parts, keys, s.columns or (), condition, *flags)


def _our_clause(clause: WrittenClause) -> Meaning:
    star = "star" if clause.assignments is None else ""
    told = tuple((a.path, _plain(a.value)) for a in clause.assignments or ())
    return (f"{clause.action.name.lower()}{star}action", _plain(clause.condition), told)


def _our_alias(target: Any) -> str | None:
    return target.alias if target.alias != target.name.parts[-1] else None


def _our_merge(s: MergeStatement) -> Meaning:
    source = s.source.relations[0].name.parts if s.source.relations else ()
    told = [tuple(_our_clause(c) for c in s.clauses if c.when is when) for when in When]
    names = (s.name.parts, _our_alias(s.target), source)
    return ("merge", *names, _plain(s.condition), *told, s.schema_evolution)


_OURS: dict[type, Callable[[Any], Meaning]] = {
    AlterTableStatement: lambda s: ("alter", s.name.parts, tuple(map(_change, s.changes))),
    RenameTableStatement: lambda s: ("rename", s.name.parts, s.new_name.parts, False),
    RenameViewStatement: lambda s: ("rename", s.name.parts, s.new_name.parts, True),
    CreateTableStatement: _our_create,
    CopyTableStatement: lambda s: (
        *("like", s.name.parts, s.source.parts, s.if_not_exists),
        f"Map({', '.join(f'{key} -> {value}' for key, value in s.properties.items())})",
    ),
    CreateViewStatement: lambda s: (
        "view",
        s.name.parts,
        tuple((c.name, c.comment) for c in s.columns),
        *(s.comment, s.text, s.if_not_exists, s.or_replace),
    ),
    CreateMaterializedView: lambda s: (
        *("materialized", s.name.parts, s.comment),
        *(s.query.without({}), s.if_not_exists),
    ),
    AlterView: lambda s: ("view as", s.name.parts, s.text),
    DropTableStatement: lambda s: ("drop table", s.name.parts, s.if_exists, False),
    DropViewStatement: lambda s: ("drop view", s.name.parts, s.if_exists),
    DropMacroStatement: lambda s: ("drop function", s.name.parts, s.if_exists),
    CreateSchemaStatement: lambda s: ("create schema", s.name.parts, s.if_not_exists),
    DropSchemaStatement: lambda s: ("drop schema", s.name.parts, s.if_exists, s.cascade),
    UseSchema: lambda s: ("use", s.name.parts),
    ShowSchemas: lambda s: ("schemas", s.schema.parts if s.schema else (), s.like),
    ShowTables: lambda s: ("tables", s.schema.parts if s.schema else (), s.like),
    ShowViews: lambda s: ("views", s.schema.parts if s.schema else (), s.like),
    ShowProperties: lambda s: ("properties", s.name.parts, s.key),
    ShowColumns: lambda s: ("columns", s.name.parts),
    ShowPartitions: lambda s: (
        *("partitions", s.name.parts),
        () if s.within is None else _our_specs(s.within),
    ),
    CreateMacroStatement: lambda s: ("create function", s.name.parts),
    DropPartitions: lambda s: (
        *("drop partitions", s.name.parts),
        _our_specs(*s.specs),
        s.if_exists,
    ),
    ReplaceColumns: lambda s: (
        *("replace columns", s.name.parts),
        tuple(column.name for column in s.columns),
    ),
    ShowCreateTable: lambda s: ("show create", s.name.parts, False),
    Describe: lambda s: ("describe", s.name.parts, s.column, s.extended),
    DescribeHistory: lambda s: ("history", s.name.parts),
    Truncate: lambda s: ("truncate", s.name.parts),
    Insert: _our_insert,
    Delete: lambda s: ("delete", s.name.parts, _our_alias(s.rows.target), _plain(s.rows.condition)),
    Update: lambda s: (
        "update",
        s.name.parts,
        _our_alias(s.rows.target),
        tuple((a.path, _plain(a.value)) for a in s.assignments),
        _plain(s.rows.condition),
    ),
    MergeStatement: _our_merge,
}
