"""The law of conversions: a value is kept exactly, or the job is told that it is lost.

Every pair of types that a job accepts meets every edge value, by the code that jobs use. What is
kept is judged by Python's own types (`tests.support.conversion_law`).
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.rows.conversions import converted, lost
from shelduck.engine.types import spark_type
from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.types.data_types import PRIMITIVES, List, Map, Member, Struct, ducklake_type
from shelduck.model.types.promotions import Verdict
from tests.support.conversion_law import DAY, FLOATS, INTEGERS, LOCAL, MOMENTS, is_kept
from tests.support.lengths import one_by_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, SparkSession

DECIMALS = ("decimal(9,2)", "decimal(18,0)", "decimal(38,2)", "decimal(38,30)")
KINDS = (*sorted(PRIMITIVES), *DECIMALS)
UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
NOT_READ = frozenset(
    "interval time_ns unknown null variant geometry timestamp_ns timestamptz_ns".split()
)

NUMBER_TEXTS = [
    *(
        "",
        " ",
        "12",
        " 12 ",
        "12\n",
        "\t12",
        "12\x00",
        "\x0012",
        "\xa012",
        "-5",
        "+1",
        "+-1",
        "--1",
    ),
    *("1e3", "1E3", "1e-2", "1e", "0x1F", "0x1p3", "1d", "1f", "1.5D", "7L", "1_000", "1,000"),
    *("\u0661\u0662", "\uff11\uff12", "\u0967", "12\u2007", "-0", "-0.0", "1.0", "1.", ".5", "."),
    *("1.5", "0.1", "1.255", "007", "0.30000000000000001", "0.3000000000000000", "3.14159265"),
    *("127", "128", "-128", "-129", "255", "256", "32768", "65536", "2147483647", "2147483648"),
    *("-2147483648", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "18446744073709551615", "18446744073709551616", "16777217"),
    *("9007199254740993", "9" * 38, "9" * 39, "1" * 300, "0." + "1" * 60, "0" * 299 + "7"),
    *("12345678901234567890123.456", "0.1234567890123456789012345678901", "0.12345678901234567890"),
    *("1e38", "1e39", "1e308", "1e309", "1e400", "-1e400", "1e-30", "1e-400", "3e38", "4e38"),
    *("5e-324", "NaN", "nan", "-NaN", "+nan", "inf", "Infinity", "-Infinity", "+inf", "infin"),
    *("true", "TRUE", " true ", "t", "yes", "n", "on", "off", "true\x00", "0", "1", "2", "x"),
]
MOMENT_TEXTS = [
    *("2024-02-29", "24-02-29", "20240229", "240229", "2024/2/29", "2024-2-9", "2023-02-29"),
    *("0001-01-01", "9999-12-31", "0000-01-01", "10000-01-01", "-0001-01-01", "2024-02-29\n"),
    *("2016-12-31 23:59:59", "2016-12-31 23:59:60", "2017-01-01 00:00:00", "2024", "2024-02"),
    *("2024-02-29 01:02", "2024-02-29 01:02:03", "2024-02-29T01:02:03.123456", "2024-2-9 1:2:3"),
    *("2024-02-29 01:02:03.1234567", "2024-02-29 01:02:03.500000000", "2024-02-29 24:00:00"),
    *("2024-02-29 01:02:03Z", "2024-02-29 01:02:03+02:00", "2024-02-29 01:02:03.5-05", "12:30:00"),
    *(
        "T12:30",
        "T12:30:00Z",
        "now",
        "today",
        "epoch",
        "2024-02-29 01:02:03\x00",
        "0001-01-01 00:00:00",
    ),
    *(
        "9999-12-31 23:59:59.999999",
        "\u0662\u0660\u0662\u0664-02-29",
        "2024-02-29 ",
        "2024-02-2\u0669",
    ),
    *("2024-02-29 01:02:03.000001", "1969-12-31 23:59:59.999999", "1582-10-10", "2024-02-29T"),
]
OTHER_TEXTS = [
    *(
        UUID,
        UUID.upper(),
        f" {UUID} ",
        f"{UUID}\n",
        f"{{{UUID}}}",
        UUID.replace("-", ""),
        f"{UUID}0",
    ),
    *("01:02:03", " 01:02:03.5", "24:00:00", "24:00:01", "01:02:03\n", "1:2:3", "01:02:03.1234567"),
    *("01:02:03+02", "01:02:03-15:59:59", "01:02:03+16", "23:59:60", "01:02:03+02\n"),
    *('{"a": 1}', ' {"a": 1} ', '{"a": 1} x', '{"a": 1, "a": 2}', "null", '"x"', "[1, 2]", "1 2"),
    *('"\x00"', "{a: 1}", "'x'", "[1,]", "01", "tru", "\ufeff1", "\ufffd", "\U0001f986", "e\u0301"),
    *("x" * 300, " x" * 300, "\x00", "a\x00b", "\\x41", "\u2028"),
]
ALL_TEXTS = [*NUMBER_TEXTS, *MOMENT_TEXTS, *OTHER_TEXTS]


def moment(text: str) -> int:
    """Microseconds since 1970."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001


INSTANTS = [
    *("0001-01-01", "9999-12-31T23:59:59.999999", "1969-12-31T23:59:59.999999", "1970-01-01"),
    *("2016-12-31T23:59:59", "2017-01-01", "2024-02-29T01:02:03.123456", "2024-02-29T01:02:03.5"),
    *("2024-02-29T01:02:03.000001", "1582-10-10T12:00:00", "0999-12-31T01:00:00"),
]
# Around the hours that Berlin skips and repeats.
SUMMER = [
    *("2024-03-31T00:59:59", "2024-03-31T01:30:00", "2024-03-31T02:30:00", "2024-03-31T03:30:00"),
    *("2024-10-26T23:30:00", "2024-10-27T00:30:00", "2024-10-27T01:30:00", "2024-10-27T02:30:00"),
]
FRACTIONS = [
    *(0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1.5, 1.25, 127.0, 128.0, -129.0, 255.0, 256.0, 65536.0),
    *(2.0**24, 2.0**24 + 2, 2.0**31, -(2.0**31), 2.0**32, 2.0**53, 2.0**63, -(2.0**63), 2.0**64),
    *(2.0**127, 2.0**59 + 2.0**40, float("nan"), float("inf"), float("-inf"), 12345.6875, 2.0**-30),
]
WIDE = [
    1e-7,
    0.1,
    1.005,
    1e15 + 0.3,
    2.0**53 - 1,
    2.0**63 - 1024,
    1e20,
    1e38,
    1e300,
    5e-324,
    1.7976931348623157e308,
]


def integers(kind: str) -> list[int]:
    bits = int(kind.lstrip("uint"))
    least, most = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    edges = {0, 1, -1, 2, 7, 20240229, 20230229, 99991231, 10101, 202402290, 202402299, 100000101}
    edges |= {
        s * (2**n + d)
        for n in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64)
        for d in (-1, 0, 1)
        for s in (1, -1)
    }
    # The nearest floats and doubles print as these, and are other numbers.
    edges |= {2147483650, 4294967300, 10**36, 10**37}
    edges |= {10**n - 1 for n in (7, 9, 17, 18, 19, 20, 36, 37, 38)} | {least, most}
    return [n for n in sorted(edges) if least <= n <= most and abs(n) < 10**38]


def decimals(kind: str) -> list[Decimal]:
    precision, scale = (int(n) for n in kind[8:-1].split(","))
    unit = Decimal(1).scaleb(-scale)
    numbers = [
        0,
        1,
        -1,
        25,
        50,
        99,
        100,
        101,
        150,
        12800,
        25500,
        2**24 + 1,
        2**31,
        2**53 + 1,
        2**63,
        2**63 - 1,
    ]
    numbers += [45289741, 10**precision - 1, 1 - 10**precision]
    whole = [n * 10**scale for n in (1, 7, 127, 128, 255, 2**31)]
    # Python's decimals round to 28 digits where they are not told otherwise.
    return [Decimal(n).scaleb(-scale) if abs(n) < 10**27 else Decimal(f"{n}E-{scale}")
            for n in [*numbers, *whole] if abs(n) < 10**precision and unit]  # fmt: skip


def edges(kind: str) -> list[Any]:
    """The edge values of a type, plain."""
    if kind in INTEGERS:
        return integers(kind)
    if kind in FLOATS:
        return FRACTIONS if kind == "float32" else FRACTIONS + WIDE
    if kind.startswith("decimal"):
        return decimals(kind)
    if kind == "boolean":
        return [True, False]
    if kind == "varchar":
        return ALL_TEXTS
    if kind == "json":
        return [
            '{"a": 1}',
            "12",
            "-5",
            "1.5",
            "1e3",
            '"2024-02-29"',
            " 12 ",
            "null",
            "true",
            "1e400",
            '"\\u0661"',
        ]
    if kind == "blob":
        texts = [t.encode() for t in (*OTHER_TEXTS, *NUMBER_TEXTS[:40])]
        return [*texts, b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"{\xff"]
    if kind == "uuid":
        return [UUID, "0" * 8 + "-0000-0000-0000-" + "0" * 12]
    if kind == "time":
        return ["00:00:00", "23:59:59.999999", "24:00:00"]
    if kind == "timetz":
        return ["00:00:00+00", "23:59:59.999999-15:59:59"]
    if kind == "date":
        return [moment(t) // DAY for t in INSTANTS]
    step = {"timestamp_s": 1_000_000, "timestamp_ms": 1000}.get(kind, 1)
    return sorted({moment(t) // step * step for t in [*INSTANTS, *SUMMER]})


def at_random(kind: str, some: random.Random) -> Any:
    """A value of a type that nobody thought of."""
    if kind in INTEGERS:
        known = integers(kind)
        return max(known[0], min(known[-1], some.choice(known) + some.randint(-9, 9)))
    if kind in FLOATS:
        numbers = [some.uniform(-300, 300), round(some.uniform(-1e9, 1e9), some.randint(0, 6))]
        numbers += [float(some.randint(-(2**54), 2**54)), 10.0 ** some.uniform(-30, 37)]
        value = some.choice(numbers)
        return value if kind == "float64" else struct.unpack("f", struct.pack("f", value))[0]
    if kind.startswith("decimal"):
        precision, scale = (int(n) for n in kind[8:-1].split(","))
        return Decimal(f"{some.randrange(10 ** some.randint(1, precision))}E-{scale}")
    if kind == "varchar":
        return mutated(some.choice(ALL_TEXTS), some)
    if kind == "blob":
        return bytes(some.choice(b'09 {}"a\xff\xc3\xa9\x00') for _ in range(some.randint(0, 6)))
    if kind == "date":
        return some.randint(-719_162, 2_932_896)
    if kind in MOMENTS:
        step = {"timestamp_s": 1_000_000, "timestamp_ms": 1000}.get(kind, 1)
        coarse = some.choice((1, 1000, 1_000_000, DAY))
        value = some.randint(-719_162 * DAY, 2_932_896 * DAY)
        return value // max(step, coarse) * max(step, coarse)
    return some.choice(edges(kind))


def mutated(text: str, some: random.Random) -> str:
    """A text of which a character went, came or changed."""
    for _ in range(some.randint(1, 2)):
        at = some.randint(0, len(text))
        new = some.choice(["", *"0159 .-+:eETZ/xX_,\n\t\x00\xa0\u0663"])
        text = text[:at] + new + text[at + some.randint(0, 1) :]
    return text


def accepted(source: str) -> list[str]:
    """The types to which a job converts values of a type."""
    if source in NOT_READ:
        return []
    old = ducklake_type(source)
    return [
        k for k in KINDS if conversion_verdict(old, ducklake_type(k)).verdict is Verdict.CONVERT
    ]


CONVERT = Verdict.CONVERT
SOURCES = tuple(k for k in KINDS if accepted(k))

Wrap = tuple["Callable[[Any], Any]", "Callable[[Column], Column]", "Callable[[Column], Column]"]
SHAPES: dict[str, Wrap] = {
    "top": (lambda t: t, lambda c: c, lambda c: c),
    "struct": (
        lambda t: Struct((Member("n", ducklake_type("int32")), Member("a", t))),
        lambda c: F.struct(F.lit(1).alias("n"), c.alias("a")),
        lambda c: c.getField("a"),
    ),
    "list": (List, lambda c: F.array(F.lit(None), c), lambda c: F.get(c, F.lit(1))),
    "value": (
        lambda t: Map(ducklake_type("int32"), t),
        lambda c: F.create_map(F.lit(1), c),
        lambda c: F.get(F.map_values(c), F.lit(0)),
    ),
    "key": (
        lambda t: Map(t, ducklake_type("int32")),
        lambda c: F.create_map(c, F.lit(1)),
        lambda c: F.get(F.map_keys(c), F.lit(0)),
    ),
}  # fmt: skip


def lifted(kind: str) -> tuple[T.DataType, Callable[[Column], Column]]:
    """How plain values come into Spark."""
    if kind == "date":
        return T.IntegerType(), lambda c: F.date_add(F.lit("1970-01-01").cast("date"), c)
    if kind == "timestamptz":
        return T.LongType(), F.timestamp_micros
    if kind in LOCAL:
        return T.StringType(), lambda c: c.cast("timestamp_ntz")
    return spark_type(ducklake_type(kind)), lambda c: c


def as_given(kind: str, value: Any) -> Any:
    """A plain value as `lifted` takes it."""
    if kind in LOCAL:
        return (datetime(1970, 1, 1) + timedelta(microseconds=value)).isoformat()  # noqa: DTZ001
    is_wide = isinstance(spark_type(ducklake_type(kind)), T.DecimalType)
    return Decimal(value) if is_wide else value


def plain(kind: str, value: Column) -> Column:
    """What comes back from Spark."""
    if kind == "date":
        return F.unix_date(value)
    if kind == "timestamptz":
        return F.unix_micros(value)
    if kind in LOCAL:
        return _micros(value)
    if kind == "float32":
        # PySpark gives the shortest text of a float, not the float.
        return value.cast("double")
    return value


def _micros(value: Column) -> Column:
    day = value.cast("date")
    seconds = F.hour(value) * 3600 + F.minute(value) * 60
    fraction = F.extract(F.lit("second"), value) * 1_000_000
    return (
        F.unix_date(day).cast("long") * F.lit(DAY)
        + seconds.cast("long") * 1_000_000
        + fraction.cast("long")
    )


def findings(
    spark: SparkSession, source: str, shape: str, values: list[Any], zone: ZoneInfo | None = None
) -> tuple[int, int, list[str]]:
    """How many conversions were judged and values kept, and what is against the law."""
    given, lift = lifted(source)
    wrap_type, wrap, unwrap = SHAPES[shape]
    old = wrap_type(ducklake_type(source))
    types = {k: wrap_type(ducklake_type(k)) for k in accepted(source)}
    types = {k: t for k, t in types.items() if conversion_verdict(old, t).verdict is CONVERT}
    numbered = [(n, as_given(source, v)) for n, v in enumerate(values)]
    rows = spark.createDataFrame(numbered, T.StructType().add("n", T.IntegerType()).add("v", given))
    rows = rows.select("n", wrap(lift(F.col("v"))).alias("v"))
    columns = []
    for target, new in types.items():
        made = unwrap(converted(F.col("v"), old, new))
        columns += [plain(target, made), lost(F.col("v"), old, new)]
    found, kept = [], 0
    for number, *made in rows.select("n", *columns).collect():
        value = values[number]
        for target, found_one, is_lost in zip(types, made[::2], made[1::2], strict=True):
            result = bytes(found_one) if isinstance(found_one, bytearray) else found_one
            if is_lost is not (result is None):
                found.append(
                    f"{shape} {source}->{target} {value!r}: lost {is_lost}, made {result!r}"
                )
            elif result is not None:
                kept += 1
                if not is_kept(source, target, value, result, zone):
                    found.append(f"{shape} {source}->{target} {value!r} became {result!r}")
    return len(values) * len(types), kept, found


def judged(spark: SparkSession, cases: Iterator[tuple[str, str, list[Any]]]) -> Counter[str]:
    """Hold the law over sources, shapes and values; return how much that was."""
    told = Counter[str]()
    against = []
    for source, shape, values in cases:
        count, kept, found = findings(spark, source, shape, values)
        told.update(conversions=count, kept=kept)
        against += found
    assert against == []
    return told


def test_texts_bytes_and_numbers_are_kept_or_told(spark):
    """The sources with most edges; all of them, at every depth, are in the slow set."""
    cases = [
        (source, "top", edges(source)) for source in ("varchar", "int64", "float64", "timestamp")
    ]
    cases += [("varchar", "list", NUMBER_TEXTS[:20]), ("int16", "key", edges("int16"))]
    told = judged(spark, iter(cases))

    assert told["conversions"] > 5500
    assert told["kept"] > 1500


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair_keeps_or_tells_every_edge(spark, shape):
    told = judged(spark, ((source, shape, edges(source)) for source in SOURCES))

    assert told["conversions"] > 12_000
    assert told["kept"] > 5000


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_by_one(range(4)))
def test_every_pair_keeps_or_tells_values_of_chance(spark, seed):
    """Each value of each pair is a program of its own; a query takes a thousand of them."""
    some = random.Random(seed)
    shapes = list(SHAPES)
    cases = (
        (
            source,
            some.choice(shapes),
            [at_random(source, some) for _ in range(600 if source == "varchar" else 150)],
        )
        for source in SOURCES
    )
    told = judged(spark, cases)

    assert told["conversions"] > 30_000


@pytest.mark.parametrize("source", ["timestamp", "timestamptz"])
def test_hours_that_a_time_zone_skips_or_repeats_are_kept_or_told(spark, source):
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        values = [moment(text) for text in SUMMER]
        count, kept, found = findings(spark, source, "top", values, ZoneInfo("Europe/Berlin"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert found == []
    # The hour that is skipped or repeated is lost, the others are not.
    assert count - 8 <= kept < count
