"""Groups of windows of event time: what Spark's ``window(...)`` does, and columns of sessions, for the texts that tests
have.
"""

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

_CALL = re.compile(r"\b(window|session_window)\([^()]*\)")
_PART = re.compile(r"(?<!`)\b(window|session_window)\.(start|end)\b")
_BOUND = r"CAST\(timestamp_micros\(`(.+)`\) AS TIMESTAMP\)"
_SESSION = re.compile(rf"named_struct\('start', {_BOUND}, 'end', {_BOUND}\)")
_LENGTHS = re.compile(
    r"window\(`(?P<time>.+)`, '(-?\d+) microseconds', '(-?\d+) microseconds', '(-?\d+) microseconds'\)"
)
_ANY = "SELECT {{'start': TIMESTAMP '1970-01-01', 'end': TIMESTAMP '1970-01-01'}} AS \"{}\""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The windows of a column of times."""

    time: str
    size_us: int
    slide_us: int
    start_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """The sessions that two columns say the beginnings and ends of."""

    begin: str
    end: str


def windows_of(expression: str) -> Windows | Sessions:
    """Read the expression by which Plait asks for windows."""
    session = _SESSION.fullmatch(expression)
    if session is not None:
        return Sessions(begin=session[1], end=session[2])
    match = _LENGTHS.fullmatch(expression)
    if match is None:
        raise NotImplementedError(f"the stand-in for Spark adds no column {expression}")
    size, slide, start = map(int, match.groups()[1:])
    return Windows(time=match["time"].replace("``", "`"), size_us=size, slide_us=slide, start_us=start)


def with_windows(part: pa.Table, name: str, windows: Windows | Sessions) -> pa.Table:
    """Return the rows once for each window they lie in, with that in a last column."""
    if isinstance(windows, Sessions):
        columns = [part.column(each).combine_chunks() for each in (windows.begin, windows.end)]
        bounds = [each.cast(pa.timestamp("us")) for each in columns]
        return part.append_column(name, pa.StructArray.from_arrays(bounds, names=["start", "end"]))
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
    """Parse what may call windows: the call stands for a column of its name, which is there if the text has none."""
    call = _CALL.search(text)
    tree = parse_one(_PART.sub(r"`\1`.`\2`", _CALL.sub(r"`\1`", text)), dialect="spark")
    if call is not None:
        one = parse_one(_ANY.format(call[1]), dialect="duckdb")
        any_window = exp.alias_(exp.Subquery(this=one), "windows", table=True)
        tree.append("joins", exp.Join(this=any_window, kind="CROSS"))
    return tree


__all__ = ["WINDOW", "Sessions", "Windows", "parsed", "windows_of", "with_windows"]
