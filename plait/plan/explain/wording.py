"""How EXPLAIN words the parts of a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from plait.plan.columns import SELECTED, TAU
from plait.plan.model import KeyColumn, Member, Output, Requirement, Selection, Step, Store, is_routed
from plait.plan.relations import UNKNOWN_TYPE, member_name
from plait.plan.traversals import split_part
from plait.spelling import backquoted, plural

_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`((?:[^`]|``)*)`""", re.DOTALL)
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))


def name(identifier: str) -> str:
    """Return an identifier as it has to be written: in backquotes only where it needs them."""
    return identifier if _PLAIN_NAME.fullmatch(identifier) else backquoted(identifier)


def sql(text: str, owner: str | None = None) -> str:
    """Return Spark SQL without needless backquotes and line breaks, column names prefixed with their owner if given."""

    def rewrite(token: re.Match[str]) -> str:
        column = token.group(1)
        if column is None:
            return token.group(0)
        shown = name(column.replace("``", "`"))
        return shown if owner is None else f"{owner}.{shown}"

    return re.sub(r"\s*\n\s*", " ", _TOKEN.sub(rewrite, text))


def duration(us: int) -> str:
    """Return a duration in the largest units that express it exactly: ``1 min 30 s``."""
    parts = []
    for size, unit in _UNITS:
        count, us = divmod(us, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def span(us: int) -> str:
    """Return about how long something took, in its two largest units: ``20 d 23 h``."""
    sizes = [size for size, _ in _UNITS]
    largest = next((place for place, size in enumerate(sizes) if us >= size), len(sizes) - 1)
    unit = sizes[min(largest + 1, len(sizes) - 1)]
    return duration((us + unit // 2) // unit * unit)


def window(window_us: int | None) -> str:
    """Return a window in words."""
    return "unbounded window" if window_us is None else f"window {duration(window_us)}"


def estimated_count(number: float | None) -> str:
    """Return an estimated count: three significant digits below a hundred, whole above, ``?`` when unknown."""
    if number is None:
        return "?"
    if 0 < number < 0.001:
        return "<0.001"
    if number >= 1e15:
        return f"{number:.2e}"
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


def plural_of(number: float, noun: str) -> str:
    """Return an estimated count with its noun."""
    return f"{estimated_count(number)} {noun if number == 1 else noun + 's'}"


def some(names: Sequence[str], most: int = 3) -> str:
    """Return the first names of a list, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def selection(shown: Selection) -> str:
    """Return the selection as a WHERE clause, empty if it selects everything."""
    if shown == Selection():
        return ""
    return " where " + " or ".join(_conjunction(each) for each in shown.alternatives)


def _conjunction(shown: Selection) -> str:
    text = " and ".join(f"({sql(conjunct.sql)})" for conjunct in shown.conjuncts)
    return f"({text})" if len(shown.conjuncts) > 1 else text


def member_text(shown: Member, store: Store) -> str:
    """Return what sets a member apart: its name, selection, and its window unless its store keeps just that long."""
    text = member_name(shown) + selection(shown.selection)
    return text if shown.window_us == store.window_us else f"{text} ({window(shown.window_us)})"


def key(shown: KeyColumn, store: Store) -> str:
    """Return a key of a store with the type it is compared as."""
    text = _expression(shown, store)
    by_size = " by size" if shown.by_size else ""
    return text if shown.type == UNKNOWN_TYPE else f"{text} as {shown.type}{by_size}"


def keys(store: Store, names: tuple[str, ...]) -> str:
    """Return some keys of a store by their expressions, with the type only where the expression occurs with several."""
    shown = [store.key(key_name) for key_name in names]
    expressions = [(each.part, each.expression.sql) for each in store.keys]
    return ", ".join(
        key(each, store) if expressions.count((each.part, each.expression.sql)) > 1 else _expression(each, store)
        for each in shown
    )


def columns(store: Store) -> str:
    """Return the columns that a store keeps beside its keys; in an intermediate store with the relation they belong to,
    and with what tells whose tuples are whose where several queries share them.
    """
    if store.intermediate is None:
        return ", ".join(name(column) for column in store.columns)
    shown = []
    for column in store.columns:
        part, own = split_part(store, column)
        owner = member_name(store.intermediate.parts[part])
        if own.startswith(SELECTED):
            shown.append(f"whether {sql(own.removeprefix(SELECTED), owner)}")
        else:
            shown.append(f"event time of {owner}" if own == TAU else f"{owner}.{name(own)}")
    return ", ".join(shown)


def _expression(shown: KeyColumn, store: Store) -> str:
    if store.intermediate is None or shown.part is None:
        return sql(shown.expression.sql)
    return sql(shown.expression.sql, member_name(store.intermediate.parts[shown.part]))


def limits(shown: Output, path: tuple[Member, ...]) -> str:
    """Return what a query leaves to others who share the steps before, empty if it takes everything."""
    taken = []
    for residual in shown.residual_filters:
        text = member_name(path[residual.position])
        if residual.selection is not None:
            text += selection(residual.selection)
        if residual.window_us is not None:
            text += f" within {duration(residual.window_us)}"
        taken.append(text)
    return f"only {', '.join(taken)}" if taken else ""


def taker(shown: Output, path: tuple[Member, ...]) -> str:
    """Return the query that takes what ends here, and what of it."""
    filters = limits(shown, path)
    return f"{shown.query} ({filters})" if filters else shown.query


def requirement(store: Store, need: Requirement) -> str:
    """Return why a tuple is kept."""
    present = f" with {keys(store, need.keys)} not null" if need.keys else ""
    return f"every row{selection(need.selection)}{present}"


def placement(store: Store) -> str:
    """Return how the tuples of a store are spread."""
    partitions = plural(store.parallelism, "partition")
    return (
        f"{partitions} by {keys(store, store.partition_by)}"
        if store.partition_by
        else f"{partitions}, placed at random"
    )


def sent_to(store: Store, step: Step) -> str:
    """Return how many partitions of a store every tuple of a step is sent to."""
    if store.parallelism == 1:
        return "the only partition"
    return "one partition" if is_routed(store, step) else f"all {plural(store.parallelism, 'partition')}"


def estimated_size(number: float) -> str:
    """Return bytes in the largest unit that keeps at least one digit before the point."""
    if 0 < number < 1:
        return "<1 B"
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{estimated_count(number)} TB"


def times(ratio: float) -> str:
    """Return by which factor something is more or less: ``2.5 x more``."""
    return f"{factor_text(ratio)} more" if ratio >= 1 else f"{factor_text(1 / ratio)} less"


def factor_text(ratio: float) -> str:
    """Return a factor with three significant digits: ``1.30 x``."""
    return f"{ratio:.2f} x" if 0.1 <= ratio < 10 else f"{estimated_count(float(f'{ratio:.3g}'))} x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """A unit of event time: streams bring a row a day or a million a second, and rates should be easy to read."""

    name: str
    seconds: int

    def count(self, per_s: float | None) -> str:
        """Return a number per unit, without the unit."""
        return estimated_count(None if per_s is None else per_s * self.seconds)

    def rate(self, per_s: float | None, noun: str) -> str:
        """Return a number per unit: ``40 probe tuples/h``."""
        return f"{self.count(per_s)} {noun}/{self.name}"


PACES = (
    Pace(name="s", seconds=1),
    Pace(name="min", seconds=60),
    Pace(name="h", seconds=3_600),
    Pace(name="day", seconds=86_400),
)


def pace_for(per_s: float | None) -> Pace:
    """Return the smallest unit in which this rate is at least ten."""
    if not per_s:
        return PACES[0]
    return next((pace for pace in PACES if per_s * pace.seconds >= 10), PACES[-1])
