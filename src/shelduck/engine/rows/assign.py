"""Store assignment: rows of a DataFrame as rows of one table, or one error with all problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, Sql, column_of, select_named
from shelduck.engine.bridge.faults import file_fault
from shelduck.engine.rows import store_rules
from shelduck.engine.rows.table_rules import failed_rule, ruled, stored
from shelduck.engine.types import spark_type
from shelduck.errors import InvalidRequest, ShelduckError, Unsupported
from shelduck.model.tables.computed import COMPUTED, ComputedColumns, computed_of
from shelduck.model.tables.constraints import CONSTRAINTS
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table_version import TableVersion, is_writable
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.data_types import Leaf, Text
from shelduck.text.ddl.defaults import expression_for_spark


@dataclass(frozen=True, slots=True)
class Demand:
    """A write that needs every column and field: who must give them, and what else can be done."""

    giver: str
    advice: str


@dataclass(frozen=True, slots=True)
class AssignStep:
    """How values become values of a field: ``convert`` None means that nothing has to be done.

    ``plain`` steps are one cast that cannot fail, so a cast of the whole value does all of them.
    """

    convert: Callable[[Column], Column] | None = None
    plain: bool = True


def assign(
    df: DataFrame, table: TableVersion, *, by_position: bool = False, keep: Sequence[str] = ()
) -> DataFrame:
    """Return the rows of ``df`` in the columns, order and Spark types of ``table``.

    Columns are matched by name without case, or by position; struct fields always by name. Columns
    that the DataFrame lacks get their default. One InvalidRequest lists every difference in types
    or names before anything runs. A single value that does not fit, or a null in a NOT
    NULL column, fails the job that writes the rows (see `failure_of`). ``keep`` is the last
    column of ``df`` if it marks rows that are not written: it follows those of the table.
    """
    given = T.StructType(df.schema.fields[: len(df.columns) - len(keep)])
    source = df.toDF(*[f"c{n}" for n in range(len(given))], *keep)
    assigning = Assigning.into(table)
    positions = (
        assigning.by_position(given, table.columns.fields)
        if by_position
        else assigning.by_name(given, table.columns.fields)
    )
    columns = [
        assigning.column(f, source.schema[at] if at is not None else None)
        for f, at in zip(table.columns.fields, positions, strict=True)
    ]
    assigning.finish()
    named = [Named(f.name, c) for f, c in zip(table.columns.fields, columns, strict=True)]
    made = select_named(source, named + [Named(name, backticked(name)) for name in keep])
    if not has_rules(table):
        return made
    given_ids = {f.id for f, at in zip(table.columns, positions, strict=True) if at is not None}
    # A load by key may end with the sign of rows that are not written.
    stays = [Sql(f"NOT coalesce(CAST({backticked(n)} AS BOOLEAN), false)") for n in keep]
    only = stays[0] if stays else None
    return ruled(made, table, lambda field: field.id in given_ids, assigning.fitting, only=only)


def has_rules(table: TableVersion) -> bool:
    """Return whether a table has constraints or computed columns."""
    return CONSTRAINTS in table.properties or COMPUTED in table.properties


def failure_of(error: BaseException) -> ShelduckError | None:
    """Return what was wrong with rows in a failed job, None if the job failed for another reason.

    A value that store assignment does not accept is InvalidRequest; see `file_fault` for files.
    """
    if isinstance(error, ShelduckError):
        return None
    told = store_rules.failed(error)
    if told is not None and told[0] != store_rules.UNHELD:
        return InvalidRequest(told[1], about=told[0])
    rule = failed_rule(error)
    return file_fault(str(error)) if rule is None else InvalidRequest(rule)


@contextmanager
def telling_failures() -> Iterator[None]:
    """Raise what was wrong with rows in place of the error of a job that failed for it."""
    try:
        yield
    except BaseException as error:
        failure = failure_of(error)
        if failure is None:
            raise
        raise failure from error


@dataclass
class Assigning:
    """One assignment to a table's columns, and what is wrong with it so far.

    A field that a struct lacks gets its default, else NULL. With a ``demand`` it is a problem.
    """

    table: str
    demand: Demand | None = None
    computed: ComputedColumns | None = None
    problems: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)

    @classmethod
    def into(cls, table: TableVersion, demand: Demand | None = None) -> Assigning:
        """Return an assignment to the columns of a table, some of which it may compute itself."""
        computed = None
        if COMPUTED in table.properties:
            computed = computed_of(table.properties, table.full_name)
        return cls(table.full_name, demand, computed)

    def by_name(self, given: T.StructType, columns: tuple[Field, ...]) -> list[int | None]:
        """Return the index of each column among the given ones, by name; None if it is missing."""
        places: dict[str, int] = {}
        known = {f.name.lower() for f in columns}
        for n, name in enumerate(given.names):
            if name.lower() in places:
                self.problems.append(f"column {quote_name(name)} is given twice")
            elif name.lower() not in known:
                self.problems.append(f"the table has no column {quote_name(name)}")
            places[name.lower()] = n
        return [places.get(f.name.lower()) for f in columns]

    def by_position(self, given: T.StructType, columns: tuple[Field, ...]) -> list[int | None]:
        """Return the index of each column among the given ones: its own position.

        Either all columns are given, or all that are not computed.
        """
        if self.computed is not None and len(given) < len(columns):
            plain = [f.id for f in columns if self.computed.of(f.id) is None]
            if len(given) == len(plain):
                return [plain.index(f.id) if f.id in plain else None for f in columns]
        if len(given) != len(columns):
            self.problems.append(
                f"the table has {len(columns)} columns, but {len(given)} are given; name the"
                " columns, or pass all of them"
            )
        return [n if n < len(given) else None for n in range(len(columns))]

    def column(
        self, target: Field, given: T.StructField | None, now: Column | None = None
    ) -> str | Column:
        """Return the value of a top-level column from a given one, its default without one.

        If a given column needs no change, it stays a name. ``now`` is as in `step`.
        """
        path = quote_name(target.name)
        computed = None if self.computed is None else self.computed.of(target.id)
        if computed is not None:
            if given is None:
                return F.lit(None).cast(self._spark_type(target))
            if computed.identity is not None and computed.identity.always:
                self.problems.append(
                    f"column {path} is GENERATED ALWAYS AS IDENTITY, and cannot be given; leave it"
                    " out"
                )
        may_be_null = not target.nullable and (given is None or given.nullable)
        if given is None:
            value = self.missing(target, path, top=True)
        else:
            step = self.step(given.dataType, target, path, now)
            if step.convert is None and not may_be_null:
                return given.name
            value = F.col(given.name)
            value = step.convert(value) if step.convert else value
        if not may_be_null:
            return value
        why = f"column {path} of {self.table} is NOT NULL, got NULL"
        return F.coalesce(value, store_rules.fail(why, self._spark_type(target)))

    def missing(self, target: Field, path: str, *, top: bool) -> Column:
        """Return the value of a column or field that is not given."""
        self.check_writable(target, path)
        default = target.default
        if default is None:
            if top and not target.nullable:
                self.problems.append(f"column {path} is missing: it is NOT NULL and has no default")
            return F.lit(None).cast(self._spark_type(target))
        assert not isinstance(target.shape, Kind)
        try:
            if default.literal:
                return store_rules.default_value(target.shape, default.text, target.name)
            what, way_out = f"the default of {path}", "set another default"
            expression = stored(expression_for_spark(default.text), what, way_out)
            return column_of(expression).cast(self._spark_type(target))
        except ShelduckError as error:
            self.problems.append(f"column {path} is missing and its default fails: {error}")
            return F.lit(None)

    def step(
        self, given: T.DataType, target: Field, path: str, now: Column | None = None
    ) -> AssignStep:
        """Return how values of a Spark type become values of a field.

        With the value that the field has ``now``, fields that a struct lacks keep theirs.
        """
        if not target.is_leaf:
            if isinstance(given, T.NullType):
                self.check_writable(target, path)
                kind = self._spark_type(target)
                return AssignStep(lambda value: value.cast(kind))
            return self._nested_step(given, target, path, now)
        assert not isinstance(target.shape, Kind)
        return self._leaf_step(given, target.shape, path)

    def _leaf_step(self, given: T.DataType, leaf: Leaf, path: str) -> AssignStep:
        if not is_writable(leaf):
            self.problems.append(_unwritable(path, leaf))
            return AssignStep()
        why = store_rules.refusal(given, leaf)
        if why:
            self.problems.append(f"column {path}: {why}")
            return AssignStep()
        place = f"{path} of {self.table}"
        convert = store_rules.conversion(given, leaf, place)
        if isinstance(leaf, Text):
            return AssignStep(store_rules.within(leaf, convert, place), plain=False)
        return AssignStep(convert, store_rules.is_plain_cast(given, leaf))

    def _nested_step(
        self, given: T.DataType, target: Field, path: str, now: Column | None
    ) -> AssignStep:
        # Elements of lists and maps have no older value: nothing tells which one it would be.
        if isinstance(given, T.ArrayType) and target.shape is Kind.LIST:
            inner = self.step(given.elementType, target.children[0], f"{path}.element")
            return self._whole(target, [inner], lambda v: F.transform(v, _applied(inner)))
        if isinstance(given, T.MapType) and target.shape is Kind.MAP:
            key = self.step(given.keyType, target.children[0], f"{path}.key")
            value = self.step(given.valueType, target.children[1], f"{path}.value")
            return self._whole(target, [key, value], lambda v: _mapped(v, key, value))
        if isinstance(given, T.StructType) and target.shape is Kind.STRUCT:
            return self._struct_step(given, target, path, now)
        self.problems.append(
            f"column {path}: {given.simpleString()} cannot be stored as {target.type}"
        )
        return AssignStep()

    def _whole(
        self, target: Field, inner: list[AssignStep], build: Callable[[Column], Column]
    ) -> AssignStep:
        if all(s.convert is None for s in inner):
            return AssignStep()
        if all(s.plain for s in inner):
            kind = self._spark_type(target)
            return AssignStep(lambda value: value.cast(kind))
        return AssignStep(build, plain=False)

    def _struct_step(
        self, given: T.StructType, target: Field, path: str, now: Column | None
    ) -> AssignStep:
        places = {name.lower(): n for n, name in enumerate(given.names)}
        for name in given.names:
            if target.child(name) is None:
                self.problems.append(f"column {path} has no field {quote_name(name)}")
        if len(places) < len(given):
            self.problems.append(f"column {path} has two fields with the same name")
        steps: list[tuple[int | None, AssignStep]] = []
        for child in target.children:
            at = places.get(child.name.lower())
            below = f"{path}.{quote_name(child.name)}"
            today = None if now is None else now.getField(child.name)
            if at is None:
                steps.append((None, _constant(self._lacked(child, below, today))))
            else:
                steps.append((at, self.step(given[at].dataType, child, below, today)))
        if [at for at, _ in steps] == list(range(len(given))) and all(s.plain for _, s in steps):
            kind = self._spark_type(target)
            same_names = given.names == [c.name for c in target.children]
            if same_names and all(s.convert is None for _, s in steps):
                return AssignStep()
            return AssignStep(lambda value: value.cast(kind))
        return AssignStep(lambda value: _built(value, given, target, steps), plain=False)

    def _lacked(self, target: Field, path: str, now: Column | None) -> Column:
        """Return the value of a field of a struct that lacks it."""
        if now is not None:
            self.check_writable(target, path)
            return now
        if self.demand is not None:
            self.lacking.append(path)
        return self.missing(target, path, top=False)

    def fitting(self, given: T.DataType, target: Field) -> Callable[[Column], Column] | None:
        """Return how a generated value becomes one of its column; InvalidRequest if it cannot."""
        step = self.step(given, target, quote_name(target.name))
        self.finish()
        return step.convert

    def check_writable(self, target: Field, path: str) -> None:
        """Note the leaves of a field that Spark cannot write."""
        self.problems.extend(
            _unwritable(path, leaf.shape)
            for leaf in target.leaves()
            if not isinstance(leaf.shape, Kind) and not is_writable(leaf.shape)
        )

    def _spark_type(self, target: Field) -> T.DataType:
        try:
            return spark_type(target.type, target.name)
        except Unsupported:
            # It is already among the problems; the column is never built.
            return T.NullType()

    def finish(self) -> None:
        """Raise InvalidRequest with a list of everything that was found wrong."""
        problems = list(self.problems)
        if self.demand is not None and self.lacking:
            names = ", ".join(dict.fromkeys(self.lacking))
            problems.append(f"{self.demand.giver} does not have {names}; {self.demand.advice}")
        if problems:
            listed = "".join(f"\n  - {problem}" for problem in problems)
            raise InvalidRequest(f"the rows do not fit {self.table}:{listed}", about="rows")


def _unwritable(path: str, leaf: Leaf) -> str:
    if str(leaf) == "null":
        return f"column {path} has no type; give it one with ALTER COLUMN {path} TYPE"
    return (
        f"column {path} is {leaf}, which Spark cannot write in a form that DuckLake's readers"
        " understand; write to this table with DuckDB"
    )


def _constant(value: Column) -> AssignStep:
    return AssignStep(lambda _: value, plain=False)


def _applied(step: AssignStep) -> Callable[[Column], Column]:
    return lambda value: step.convert(value) if step.convert else value


def _mapped(value: Column, key: AssignStep, item: AssignStep) -> Column:
    if key.convert:
        value = F.transform_keys(value, lambda k, _: _applied(key)(k))
    if item.convert:
        value = F.transform_values(value, lambda _, v: _applied(item)(v))
    return value


def _built(
    value: Column, given: T.StructType, target: Field, steps: list[tuple[int | None, AssignStep]]
) -> Column:
    members = []
    for child, (at, step) in zip(target.children, steps, strict=True):
        member = value if at is None else value.getField(given.names[at])
        members.append(_applied(step)(member).alias(child.name))
    return F.when(value.isNotNull(), F.struct(*members))
