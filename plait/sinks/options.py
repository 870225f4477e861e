"""Options of sinks: which there are, what they accept, and what is wrong with those given.

The options of the file sinks are those that Spark 4.2's writers read. One that a writer would ignore is refused like
one that does not exist: it would do nothing, and nobody would be told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from plait.query.model import Options
from plait.spelling import did_you_mean, folded


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOption:
    """An option by the name Spark's documentation gives it. `expects` completes "expected ..."; `accepts` judges a
    value in lower case.
    """

    name: str
    expects: str = "a text"
    accepts: Callable[[str], bool] = lambda value: True


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkProblem:
    """What is wrong: with an `option`, as written; with a result `column`, by its place; or with neither, because an
    option is missing.
    """

    message: str
    option: str | None = None
    column: int | None = None


def texts(*names: str) -> tuple[SinkOption, ...]:
    """Return options that take any text."""
    return tuple(SinkOption(name=name) for name in names)


def switches(*names: str) -> tuple[SinkOption, ...]:
    """Return options that are true or false."""
    return tuple(one_of(name, "true", "false") for name in names)


def one_of(name: str, *values: str) -> SinkOption:
    """Return an option that takes one of some words."""
    shown = " or ".join((", ".join(values[:-1]), values[-1]))
    return SinkOption(name=name, expects=shown, accepts=lambda value: value in values)


def count(name: str) -> SinkOption:
    """Return an option that takes a number of things."""
    is_count = re.compile(r"[1-9]\d{0,17}")
    return SinkOption(
        name=name, expects="a whole number above zero", accepts=lambda value: is_count.fullmatch(value) is not None
    )


PATH: Final = SinkOption(name="path")
EXISTING: Final = one_of("existing", "append", "overwrite")
PARTITION_BY: Final = SinkOption(name="partitionBy", expects="names of columns: 'a, b'")

_ELSEWHERE: Final = {
    "mode": "write existing 'append' or existing 'overwrite'",
    "checkpointlocation": "the checkpoint belongs to the run: --checkpoint DIR, or Engine(checkpoint=...)",
    "trigger": "write SET plait.trigger = '1 second'",
    "outputmode": "results are only ever added; leave it out",
    "partitionoverwritemode": "write existing 'overwrite' to replace what is there",
}
"""What users of Spark write here, and what it is in Plait."""


def option_of(options: Options, name: str) -> str | None:
    """Return an option's value, whatever the case of its name; None if it is not given."""
    return next((value for given, value in options if folded(given) == folded(name)), None)


def option_problems(sink: str, options: Options, known: Iterable[SinkOption], prefix: str) -> list[SinkProblem]:
    """Return what is wrong with the options of a sink; it also takes those whose names begin with `prefix`, if any."""
    by_name = {folded(option.name): option for option in known}
    problems, seen = [], set[str]()
    for name, value in options:
        option = by_name.get(folded(name))
        if folded(name) in seen:
            problems.append(SinkProblem(option=name, message=f"option '{name}' is given twice; keep one"))
        elif option is not None and not option.accepts(value.strip().lower()):
            message = f"option '{name}' is '{value}'; expected {option.expects}"
            problems.append(SinkProblem(option=name, message=message))
        elif option is None and not (prefix and folded(name).startswith(prefix)):
            problems.append(SinkProblem(option=name, message=_unknown(sink, name, by_name.values())))
        seen.add(folded(name))
    return problems


def _unknown(sink: str, name: str, known: Iterable[SinkOption]) -> str:
    elsewhere = _ELSEWHERE.get(folded(name))
    if elsewhere is not None:
        return f"the sink '{sink}' has no option '{name}'; {elsewhere}"
    names = [option.name for option in known]
    hint = did_you_mean(name, names) if names else "; it takes none"
    return f"the sink '{sink}' has no option '{name}', which would have no effect{hint}"
