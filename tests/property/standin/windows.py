"""Groups of windows of event time: what Spark's ``window(...)`` does, for the texts that the tests have."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp, parse_one

from plait.state.gathered import microseconds

WINDOW = "struct<start:timestamp,end:timestamp>"
"""The type of a column of windows."""

_CALL = re.compile(r"\bwindow\([^()]*\)")
_PART = re.compile(r"(?<!`)\bwindow\.(start|end)\b")
_LENGTHS = re.compile(
    r"window\(`(?P<time>.+)`, '(-?\d+) microseconds', '(-?\d+) microseconds', '(-?\d+) microseconds'\)"
)
_ANY = "SELECT {'start': TIMESTAMP '1970-01-01', 'end': TIMESTAMP '1970-01-01'} AS \"window\""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The windows of a column of times."""

    time: str
    size_us: int
    slide_us: int
    start_us: int


def windows_of(expression: str) -> Windows:
    """Read the expression by which Plait asks for windows."""
    match = _LENGTHS.fullmatch(expression)
    if match is None:
        raise NotImplementedError(f"the stand-in for Spark adds no column {expression}")
    size, slide, start = map(int, match.groups()[1:])
    return Windows(time=match["time"].replace("``", "`"), size_us=size, slide_us=slide, start_us=start)


def with_windows(part: pa.Table, name: str, windows: Windows) -> pa.Table:
    """Return the rows once for each window they lie in, with that in a last column."""
    taus = microseconds(part.column(windows.time).combine_chunks()).to_numpy()
    last = (taus - windows.start_us) // windows.slide_us * windows.slide_us + windows.start_us
    pieces = []
    for back in itertools.count():
        begins = last - back * windows.slide_us
        places = np.flatnonzero(begins + windows.size_us > taus)
        if back * windows.slide_us >= windows.size_us:
            break
        ends = begins[places] + windows.size_us
        bounds = [pa.array(each).cast(pa.timestamp("us")) for each in (begins[places], ends)]
        struct = pa.StructArray.from_arrays(bounds, names=["start", "end"])
        pieces.append(part.take(pa.array(places)).append_column(name, struct))
    return pa.concat_tables(pieces)


def parsed(text: str) -> exp.Expr:
    """Parse what may call windows: the call stands for a column ``window``, which is there if the text has none."""
    is_asked = _CALL.search(text) is not None
    tree = parse_one(_PART.sub(r"`window`.`\1`", _CALL.sub("`window`", text)), dialect="spark")
    if is_asked:
        any_window = exp.alias_(exp.Subquery(this=parse_one(_ANY, dialect="duckdb")), "windows", table=True)
        tree.append("joins", exp.Join(this=any_window, kind="CROSS"))
    return tree


__all__ = ["WINDOW", "Windows", "parsed", "windows_of", "with_windows"]
