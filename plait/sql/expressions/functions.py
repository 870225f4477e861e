"""Functions that have no place in a continuous join, by name. `tests/spark/test_front_end.py` compares with Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from plait.sql.expressions.spark_functions import BUILT_IN, NOT_CALLED
from plait.sql.lexis import foreign
from plait.sql.lexis.names import did_you_mean
from plait.sql.lexis.tokens import Token

IsFunction: TypeAlias = Callable[[str], bool]
"""Whether Spark knows a function of this name, beside the built-in ones."""

_AGGREGATES: Final = """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every
    first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kurtosis last last_value listagg max max_by mean measure median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum
    theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
    tuple_union_agg_integer var_pop var_samp variance vector_avg vector_sum
"""
_WINDOWS: Final = "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number"
_GENERATORS: Final = """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
    variant_explode_outer
"""
_CLOCKS: Final = "current_timestamp now current_date curdate current_time localtimestamp"
_RANDOM: Final = """
    rand randn random uuid shuffle randstr uniform monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length java_method reflect try_reflect
"""
_WITHIN: Final = (
    "groups end only where windows of time do: write GROUP BY window(o.ts, '10 minutes') and what else to group by, "
    "with the time column of a stream, and conditions on aggregates in HAVING"
)

_GROUPED: Final = """
    approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp every
    grouping grouping_id kurtosis max mean median min percentile session_window skewness std stddev stddev_pop
    stddev_samp sum try_avg try_sum var_pop var_samp variance window
"""
GROUPED: Final = frozenset(_GROUPED.split())
"""What a query that groups may call besides: their values do not depend on the order of rows, but for the last digit of
fractions.
"""

_ORDERED: Final = "first first_value last last_value collect_list array_agg collect_set"
ORDERED: Final = frozenset(_ORDERED.split())
"""Those whose values do: they take rows in the order of event time."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            _AGGREGATES.split(),
            "the aggregate function {}(), whose value depends on the order of rows, or is a sketch: call another one, "
            "or aggregate where the results are read",
        ),
        **dict.fromkeys(
            GROUPED | ORDERED, f"the aggregate function {{}}() without a window of time to group by: {_WITHIN}"
        ),
        "window": f"window() where nothing is grouped by it: {_WITHIN}",
        "session_window": f"session_window() where nothing is grouped by it: {_WITHIN}",
        "window_time": "window_time(): group by window(o.ts, '10 minutes'), with window.start, window.end",
        **dict.fromkeys(_WINDOWS.split(), "the window function {}(): compute it where the results are read"),
        **dict.fromkeys(
            _GENERATORS.split(), "the generator {}(): flatten rows before the stream is read, or afterwards"
        ),
        **dict.fromkeys(
            _CLOCKS.split(), "{}: it would depend on when a batch runs; use the time column of a stream instead"
        ),
        **dict.fromkeys(
            _RANDOM.split(), "{}(): its value changes from run to run, so results could not be repeated; use a column"
        ),
    }
)
"""What Plait does not run, by function name in lower case; ``{}`` is the name."""

_QUANTIFIERS: Final = ("any", "some")
_BARE: Final = frozenset({"current_timestamp", "current_date", "current_time", "localtimestamp"})

BARE_FUNCTIONS: Final = _BARE | {"current_user", "session_user", "user", "current_catalog", "current_database"}
"""Functions called without parentheses, if no column has that name."""

PARSER_KEYWORDS: Final = frozenset(
    {"current_timestamp", "current_date", "current_datetime", "current_user", "session_user", "current_role"}
)
"""Words that sqlglot never takes for a column, which they are in Spark if there is one."""


def refused_calls(tokens: Sequence[Token], *, is_condition: bool = False) -> Iterator[tuple[Token, str]]:
    """Yield (token, what it is and what to do) for every refused function call."""
    for index, token in enumerate(tokens):
        previous, following = _at(tokens, index - 1), _at(tokens, index + 1)
        if previous is not None and previous.is_symbol("."):
            continue
        if token.keyword == "OVER" and previous is not None and previous.is_symbol(")"):
            yield token, "window functions (OVER): compute them where the results are read"
        if token.kind in ("word", "quoted") and following is not None and following.is_symbol("("):
            name = token.value.lower()
            if name in _QUANTIFIERS and previous is not None and previous.keyword in ("LIKE", "ILIKE"):
                continue
            if is_condition and name in foreign.WINDOW_FUNCTIONS:
                yield token, f"{name}() in a condition: {foreign.BUCKETS}"
            elif name in REFUSED:
                yield token, REFUSED[name].format(name)
            elif name == "unix_timestamp" and (last := _at(tokens, index + 2)) is not None and last.is_symbol(")"):
                yield token, REFUSED["now"].format("unix_timestamp() of now")


def unknown_calls(
    tokens: Sequence[Token], registered: Sequence[str] = (), is_function: IsFunction | None = None
) -> Iterator[tuple[Token, str]]:
    """Yield (token, message) for every call of a function that neither Spark nor the user has."""
    names = {name.lower() for name in registered}
    for index, token in enumerate(tokens[:-1]):
        if not tokens[index + 1].is_symbol("(") or token.kind not in ("word", "quoted") or token.keyword in NOT_CALLED:
            continue
        name, previous = token.value.lower(), _at(tokens, index - 1)
        is_qualified = previous is not None and previous.is_symbol(".")
        is_known = name in BUILT_IN or name in names or name in REFUSED
        if not (is_qualified or is_known) and not (is_function is not None and is_function(token.value)):
            yield token, _unknown(token.value, registered)


def _unknown(name: str, registered: Sequence[str]) -> str:
    answer = foreign.FUNCTIONS.get(name.lower())
    if answer is not None:
        return f"Spark has no function {name}(): {answer}"
    hint = did_you_mean(name, (*registered, *sorted(BUILT_IN)))
    if hint.startswith("; did"):
        return f"there is no function {name}(){hint}"
    return (
        f"there is no function {name}(): Spark has none of this name; correct it, or register it in Python (a join "
        "predicate with engine.predicate(name, function), anything else with spark.udf.register)"
    )


def reads_clock(name: str) -> bool:
    """Tell whether a function called without parentheses reads the clock."""
    return name.lower() in _BARE


def _at(tokens: Sequence[Token], index: int) -> Token | None:
    return tokens[index] if 0 <= index < len(tokens) else None
