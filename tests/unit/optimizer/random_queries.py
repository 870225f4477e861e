"""Random query sets over few streams and tables, so that queries overlap and join themselves."""

from __future__ import annotations

from hypothesis import strategies as st

from plait.query.model import Query, Source
from plait.stats.model import SourceStatistics, Statistics
from tests.unit.optimizer.queries import equality, query, stream, table

STREAMS = ("r", "s", "t", "u", "v")
TABLES = ("x", "y")
COLUMNS = ("a", "b", "`a` + 1")
SELECTIONS = ("`a` > 1", "`b` < 3", "`a` = `b`")


@st.composite
def one_query(draw: st.DrawFn, name: str) -> Query:
    """Draw a connected or partly crossed query of one to six relations."""
    count = draw(st.integers(1, 6))
    chosen = [draw(st.sampled_from(STREAMS))]
    chosen += [draw(st.sampled_from(STREAMS + TABLES)) for _ in range(count - 1)]
    chosen = draw(st.permutations(chosen))
    aliases = draw(st.permutations("abcdef"))[:count]
    pairs = [(i, j) for i in range(count) for j in range(i)]
    shape = draw(st.sampled_from(("chain", "star", "cycle", "clique", "any")))
    joined = [pair for pair in pairs if _is_edge(shape, pair, count) or (shape == "any" and draw(st.booleans()))]
    conditions = []
    for i, j in joined:
        for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
            left, right = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(COLUMNS))
            type = draw(st.sampled_from(("bigint", "string", None)))
            conditions.append(equality(f"{aliases[i]}.{left} = {aliases[j]}.{right}", type))
    return query(
        name,
        dict(zip(aliases, chosen, strict=True)),
        conditions,
        where={alias: draw(st.lists(st.sampled_from(SELECTIONS), max_size=2)) for alias in aliases},
        windows={alias: draw(st.sampled_from((10, 10, 10, 60, None))) for alias in aliases},
        tables=TABLES,
        select=[f"{alias}.{draw(st.sampled_from('abc'))}" for alias in aliases],
    )


def _is_edge(shape: str, pair: tuple[int, int], count: int) -> bool:
    i, j = pair
    match shape:
        case "chain":
            return i == j + 1
        case "star":
            return j == 0
        case "cycle":
            return i == j + 1 or (j == 0 and i == count - 1)
        case "clique":
            return True
    return False


@st.composite
def query_sets(draw: st.DrawFn, largest: int = 4) -> tuple[Query, ...]:
    """Draw one to `largest` queries; sometimes two are the same but for their name."""
    found = [draw(one_query(f"q{n}")) for n in range(draw(st.integers(1, largest)))]
    return tuple(found)


SOURCES: tuple[Source, ...] = (*(stream(name) for name in reversed(STREAMS)), *(table(name) for name in TABLES))


@st.composite
def random_statistics(draw: st.DrawFn) -> Statistics:
    """Draw statistics that know some things about some sources."""
    distinct = st.sampled_from((1.0, 7.0, 1e4))
    number = st.none() | st.sampled_from((0.0, 1.0, 10.0, 1e3, 1e6))
    return Statistics(
        sources=tuple(
            SourceStatistics(
                source=name,
                rate_rows_per_s=draw(number),
                rows=draw(number),
                distinct=tuple((column, draw(distinct)) for column in "ab" if draw(st.booleans())),
                selectivity=tuple((f"({sql})", draw(st.floats(0, 1))) for sql in SELECTIONS if draw(st.booleans())),
            )
            for name in sorted(STREAMS + TABLES)
            if draw(st.booleans())
        )
    )
