"""Text that a catalog stores and Spark runs: whoever can write it must not run code with it.

Views, macros and the expressions of jobs are run in the session of whoever reads or works. They
may compute with the rows of the lake and with nothing else: no Java, no script, no function of the
session, no file, no setting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shelduck.errors import Unsupported
from shelduck.text.query.relations import FILE_FORMATS, QUERY_WORDS
from shelduck.text.tokens.lexer import Token, TokenKind, name_of, tokenize

# Spark's own functions, without those that call Java (reflect), read a file (from_protobuf, XML
# with a schema), or load a library (Avro). Types with a length are written like calls.
FUNCTIONS = frozenset(
    """abs acos acosh add_months aes_decrypt aes_encrypt aggregate and any any_value
    approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine approx_top_k_estimate array array_agg array_append array_compact
    array_contains array_distinct array_except array_insert array_intersect array_join
    array_max array_min array_position array_prepend array_remove array_repeat array_size
    array_sort array_union arrays_overlap arrays_zip ascii asin asinh assert_true atan atan2
    atanh avg base64 between bigint bin binary bit_and bit_count bit_get bit_length bit_or
    bit_xor bitmap_and_agg bitmap_bit_position bitmap_bucket_number bitmap_construct_agg
    bitmap_count bitmap_or_agg bool_and bool_or boolean bround btrim cardinality case cast
    cbrt ceil ceiling char char_length character character_length chr coalesce collate
    collation collations collect_list collect_set collect_union concat concat_ws contains
    conv convert_timezone corr cos cosh cot count count_if count_min_sketch counter_diff
    covar_pop covar_samp crc32 csc cume_dist curdate current_catalog current_database
    current_date current_path current_schema current_time current_timestamp current_timezone
    current_user date date_add date_diff date_format date_from_unix_date date_part date_sub
    date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear dec
    decimal decode degrees dense_rank div double e element_at elt encode endswith equal_null
    every exists exp explode explode_outer expm1 extract factorial filter find_in_set first
    first_value flatten float floor forall format_number format_string from_base32 from_csv
    from_json from_unixtime from_utc_timestamp get get_json_object getbit greatest grouping
    grouping_id hash hex histogram_numeric hll_sketch_agg hll_sketch_estimate hll_union
    hll_union_agg hmac hour hypot if ifnull ilike in initcap inline inline_outer
    input_file_block_length input_file_block_start input_file_name instr int is_valid_utf8
    is_valid_variant is_variant_null isnan isnotnull isnull jaro_winkler_similarity
    json_array_length json_object_keys json_tuple kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
    kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
    kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
    kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double
    kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
    kll_sketch_to_string_float kurtosis lag last last_day last_value lcase lead least left
    len length levenshtein like listagg ln localtime localtimestamp locate log log10 log1p
    log2 lower lpad ltrim luhn_check make_date make_dt_interval make_interval make_time
    make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval
    map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries
    map_keys map_values map_zip_with mask max max_by md5 mean measure median min min_by
    minute mod mode monotonically_increasing_id month monthname months_between named_struct
    nanvl negative next_day not now nth_value ntile nullif nullifzero numeric nvl nvl2
    octet_length or overlay parse_json parse_url percent_rank percentile percentile_approx
    percentile_cont percentile_disc pi pmod posexplode posexplode_outer position positive
    pow power printf quarter quote radians raise_error rand randn random randstr range rank
    reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike round
    row_number rpad rtrim schema_of_csv schema_of_json schema_of_variant
    schema_of_variant_agg sec second sentences sequence session_user session_window sha sha1
    sha2 shiftleft shiftright shiftrightunsigned shuffle sign signum sin sinh size skewness
    slice smallint some sort_array soundex space spark_partition_id split split_part
    sql_keywords sqrt st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid stack
    startswith std stddev stddev_pop stddev_samp str_to_map string string_agg struct substr
    substring substring_index sum tan tanh theta_difference theta_intersection
    theta_intersection_agg theta_sketch_agg theta_sketch_estimate theta_union
    theta_union_agg time time_bucket time_diff time_from_micros time_from_millis
    time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp
    timestamp_micros timestamp_millis timestamp_nanos timestamp_seconds timestampadd
    timestampdiff tinyint to_base32 to_binary to_char to_csv to_date to_json to_number
    to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
    to_utc_timestamp to_varchar to_variant_object to_xml transform transform_keys
    transform_values translate trim trunc try_add try_aes_decrypt try_avg try_cast
    try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_subtract
    try_sum try_to_binary try_to_date try_to_number try_to_time try_to_timestamp
    try_url_decode try_validate_utf8 try_variant_array_append try_variant_get
    try_variant_insert try_variant_set tuple_difference_double tuple_difference_integer
    tuple_difference_theta_double tuple_difference_theta_integer
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_intersection_double
    tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
    tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
    tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer typeof ucase unbase64 unhex uniform
    unix_date unix_micros unix_millis unix_nanos unix_seconds unix_timestamp upper
    url_decode url_encode user uuid validate_utf8 var_pop var_samp varchar variance
    variant_array_append variant_delete variant_explode variant_explode_outer variant_get
    variant_insert variant_set variant_strip_nulls vector_avg vector_cosine_similarity
    vector_inner_product vector_l2_distance vector_norm vector_normalize vector_sum version
    weekday weekofyear when width_bucket window window_time xxhash64 year zeroifnull
    zip_with""".split()
)
# Words of the grammar behind which a bracket is not a call.
_WORDS = frozenset(
    """ALL AND ANTI ANY AS BETWEEN BY CASE CLUSTER CROSS CUBE DISTINCT DIV ELSE EXCEPT EXISTS FILTER
    FOR FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT IS JOIN LATERAL LEFT LIKE LIMIT MINUS NOT
    OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT QUALIFY REGEXP REPEATABLE RIGHT RLIKE ROLLUP
    SELECT SEMI SETMINUS SETS SOME SORT TABLE TABLESAMPLE THEN UNION UNPIVOT USING VALUES WHEN WHERE
    WINDOW""".split()
)
Names = Callable[[tuple[str, ...]], bool]


def refuse_harmful(text: str, way_out: str, is_macro: Names = lambda _: False) -> None:
    """Raise Unsupported for a text that does more than compute with rows.

    ``is_macro`` tells the names of the lake's macros, whose texts are checked on their own.
    ``way_out`` is what its reader can do about it.
    """
    found = _harm(text, is_macro)
    if found:
        raise Unsupported(f"it {found}, which stored text must not do; {way_out}")


def _harm(text: str, is_macro: Names) -> str:
    if "${" in text:
        return "contains ${...}, in whose place Spark puts a setting or a variable of the system"
    tokens = tokenize(text)
    for at, token in enumerate(tokens[:-1]):
        behind = tokens[at + 1]
        if token.key == "USING" and behind.kind is TokenKind.STRING:
            return "runs a script"
        if _is_file(tokens, at):
            return f"reads the file {tokens[at + 2].text}"
        if behind.key == "(" and not _is_fine(tokens, at, is_macro):
            return f"calls {token.text}()"
    return ""


def _is_file(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a file is read by its path, as in ``parquet.`/folder` ``."""
    name = tokens[at + 2] if at + 2 < len(tokens) else tokens[-1]
    return (
        tokens[at].may_name
        and tokens[at + 1].key == "."
        and name_of(tokens[at]).lower() in FILE_FORMATS
        and "/" in name.text
    )


def _is_fine(tokens: Sequence[Token], at: int, is_macro: Names) -> bool:
    """Tell whether a token before a bracket is not a call, or one of a function on the list."""
    token, before = tokens[at], tokens[at - 1].key if at else ""
    if token.kind is TokenKind.SYMBOL or token.kind is TokenKind.NUMBER:
        return True
    if before == "AS" or _names_query(tokens, at):
        return True
    if token.kind is TokenKind.WORD and before != "." and token.key in _WORDS:
        return True
    if not token.may_name:
        return False
    parts = _parts(tokens, at)
    return (len(parts) == 1 and parts[0] in FUNCTIONS) or is_macro(parts)


def _parts(tokens: Sequence[Token], at: int) -> tuple[str, ...]:
    parts = [name_of(tokens[at]).lower()]
    while at > 1 and tokens[at - 1].key == "." and tokens[at - 2].may_name:
        at -= 2
        parts.insert(0, name_of(tokens[at]).lower())
    return tuple(parts)


def _names_query(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a name in WITH has its columns in the bracket: ``WITH x (a, b) AS (SELECT``."""
    closing = at + 1
    while closing < len(tokens) - 1 and tokens[closing].key != ")":
        closing += 1
    keys = [token.key for token in tokens[closing + 1 : closing + 5]]
    return (
        keys[:2] == ["AS", "("]
        and len(keys) == 4
        and keys[2] in QUERY_WORDS
        and keys[3] not in (",", ")")
    )
