"""The oddest values that Spark holds: those that DuckDB reads too, and those that it does not."""

from __future__ import annotations

LEAST = "timestamp_micros(-9223372022400000000)"
INFINITE_PAST = "timestamp_micros(-9223372036854775807)"


# Its type, how Spark writes it, and DuckDB's text of it.
HELD = (
    ("STRING", "'\U0001f986'", "\U0001f986"),
    ("STRING", "cast(X'EFBFBD' AS STRING)", "\ufffd"),
    ("STRING", "cast(X'F48FBFBF' AS STRING)", "\U0010ffff"),
    ("STRING", "cast(X'ED9FBFEE8080' AS STRING)", "\ud7ff\ue000"),
    ("STRING", "concat('a', char(0), 'b')", "a\0b"),
    ("STRING", "repeat('née ', 100000)", "née " * 100_000),
    ("STRING", "'1 (BC)'", "1 (BC)"),
    ("BINARY", "X'00FFFE'", "\\x00\\xFF\\xFE"),
    ("DATE", "DATE '-0044-03-15'", "0045-03-15 (BC)"),
    ("DATE", "DATE '0000-01-01'", "0001-01-01 (BC)"),
    ("DATE", "DATE '1582-10-10'", "1582-10-10"),
    ("DATE", "DATE '+10000-01-01'", "10000-01-01"),
    ("DATE", "date_from_unix_date(2147483646)", "5881580-07-10"),
    ("DATE", "date_from_unix_date(2147483647)", "infinity"),
    ("DATE", "date_from_unix_date(-2147483646)", "5877642-06-25 (BC)"),
    ("DATE", "date_from_unix_date(-2147483647)", "-infinity"),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '-290308-12-22 00:00:00'", "290309-12-22 (BC) 00:00:00"),
    (
        "TIMESTAMP_NTZ",
        "TIMESTAMP_NTZ '+294247-01-10 04:00:54.775806'",
        "294247-01-10 04:00:54.775806",
    ),
    ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '1582-10-10 00:00:00'", "1582-10-10 00:00:00"),
    ("TIMESTAMP", LEAST, "290309-12-22 (BC) 00:00:00+00"),
    ("TIMESTAMP", INFINITE_PAST, "-infinity"),
    ("TIMESTAMP", "timestamp_micros(9223372036854775807)", "infinity"),
    ("DOUBLE", "double('NaN')", "nan"),
    ("DOUBLE", "-double('NaN')", "nan"),
    ("DOUBLE", "-0.0D", "-0.0"),
    ("DOUBLE", "4.9E-324D", "5e-324"),
    ("DOUBLE", "double('-inf')", "-inf"),
    ("FLOAT", "cast(1.4E-45D AS FLOAT)", "1e-45"),
    ("DECIMAL(38,10)", "-9999999999999999999999999999.9999999999BD", f"-{'9' * 28}.{'9' * 10}"),
    ("DECIMAL(38,38)", "cast('1E-38' AS DECIMAL(38,38))", f".{'0' * 37}1"),
    ("ARRAY<STRING>", "array('a', NULL, concat('b', char(0)))", "[a, NULL, b\0]"),
    ("ARRAY<DATE>", "array(date_from_unix_date(-2147483647))", "[-infinity]"),
    ("STRUCT<a: DATE>", "named_struct('a', DATE '-0044-03-15')", "{'a': '0045-03-15 (BC)'}"),
    ("MAP<STRING, INT>", "map()", "{}"),
    ("MAP<DOUBLE, INT>", "map(-0.0D, 1)", "{0.0=1}"),
)

NOT_UTF8 = (
    "the text {}, which is not UTF-8: other readers could not read the table; write"
    " make_valid_utf8({}), or use a BINARY column"
)
FIRST = "which other readers do not have: the first {} is {}; write a later one, or NULL"
FIRST_DATE = FIRST.format("date", "5877642-06-25 (BC)")
FIRST_LOCAL = FIRST.format("timestamp", "290309-12-22 (BC) 00:00:00")
FIRST_INSTANT = FIRST.format("timestamptz", "290309-12-22 (BC) 00:00:00+00")

# Its type, how Spark writes it, the field that holds it, and what is wrong with it.
UNHELD = (
    ("STRING", "cast(X'FFFE41' AS STRING)", "v", NOT_UTF8.format("X'FFFE41'", "v")),
    ("DATE", "date_from_unix_date(-2147483648)", "v", f"5877642-06-23 (BC), {FIRST_DATE}"),
    (
        "TIMESTAMP",
        "timestamp_micros(-9223372036854775808)",
        "v",
        f"290309-12-21 (BC) 19:59:05.224192+00, {FIRST_INSTANT}",
    ),
    (
        "TIMESTAMP_NTZ",
        "TIMESTAMP_NTZ '-290308-12-21 23:59:59.999999'",
        "v",
        f"290309-12-21 (BC) 23:59:59.999999, {FIRST_LOCAL}",
    ),
    (
        "MAP<STRING, STRUCT<a: ARRAY<STRING>>>",
        "map('k', named_struct('a', array('a', cast(X'C3' AS STRING))))",
        "v.value.a.element",
        NOT_UTF8.format("X'C3'", "v"),
    ),
    ("STRING", "cast(X'C080' AS STRING)", "v", NOT_UTF8.format("X'C080'", "v")),
    ("STRING", "cast(X'EDA080' AS STRING)", "v", NOT_UTF8.format("X'EDA080'", "v")),
    ("STRING", "cast(X'F4908080' AS STRING)", "v", NOT_UTF8.format("X'F4908080'", "v")),
    ("STRING", "cast(X'E08080' AS STRING)", "v", NOT_UTF8.format("X'E08080'", "v")),
    ("STRING", "cast(X'F0808080' AS STRING)", "v", NOT_UTF8.format("X'F0808080'", "v")),
    ("STRING", "cast(X'616263646566676880' AS STRING)", "v", "X'616263646566676880'"),
    ("STRING", "cast(X'61E282' AS STRING)", "v", NOT_UTF8.format("X'61E282'", "v")),
    ("STRING", "cast(unhex(repeat('FF', 50)) AS STRING)", "v", f"X'{'FF' * 32}...'"),
    ("MAP<STRING, INT>", "map(cast(X'FF' AS STRING), 1)", "v.key", "the text X'FF'"),
    ("STRUCT<a: STRING>", "named_struct('a', cast(X'FF' AS STRING))", "v.a", "the text X'FF'"),
    ("ARRAY<DATE>", "array(date_from_unix_date(-2147483648))", "v.element", FIRST_DATE),
    (
        "STRUCT<a: TIMESTAMP>",
        "named_struct('a', timestamp_micros(-9223372022400000001))",
        "v.a",
        FIRST_INSTANT,
    ),
)
