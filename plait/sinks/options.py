"""Options of sinks: which there are, what they accept, and what is wrong with those given.

The options of the file sinks are those that Spark 4.2's writers read. One that a writer would ignore is refused like
one that does not exist: it would do nothing, and nobody would be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from plait.option_values import ANY, Values, words
from plait.query.model import Options
from plait.spelling import did_you_mean, folded


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOption:
    """An option by the name Spark's documentation gives it."""

    name: str
    values: Values = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkProblem:
    """What is wrong: with an `option`, as written; with a result `column`, by its place; or with neither, because an
    option is missing: `example` shows it, where it is not a path.
    """

    message: str
    example: str | None = None
    option: str | None = None
    column: int | None = None


def accepting(values: Values, *names: str) -> tuple[SinkOption, ...]:
    """Return options that accept the same."""
    return tuple(SinkOption(name=name, values=values) for name in names)


PATH: Final = SinkOption(name="path")
EXISTING: Final = SinkOption(name="existing", values=words("append", "overwrite"))
PARTITION_BY: Final = SinkOption(name="partitionBy")

_ALIASES: Final = (("sep", "delimiter"), ("encoding", "charset"), ("compression", "codec"))
"""Two names of one option: Spark takes no notice of the second."""

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
        elif option is not None and (message := option.values.problem_of(name, value)) is not None:
            problems.append(SinkProblem(option=name, message=message))
        elif option is None and not (prefix and folded(name).startswith(prefix)):
            problems.append(SinkProblem(option=name, message=_unknown(sink, name, by_name.values())))
        seen.add(folded(name))
    return problems or _said_twice(options)


def _said_twice(options: Options) -> list[SinkProblem]:
    problems = []
    for names in _ALIASES:
        both = [name for name, _ in options if folded(name) in names]
        if len(both) > 1:
            message = f"options '{both[0]}' and '{both[1]}' say the same thing; leave one of them out"
            problems.append(SinkProblem(option=both[1], message=message))
    return problems


def _unknown(sink: str, name: str, known: Iterable[SinkOption]) -> str:
    elsewhere = _ELSEWHERE.get(folded(name))
    if elsewhere is not None:
        return f"the sink '{sink}' has no option '{name}'; {elsewhere}"
    names = [option.name for option in known]
    hint = did_you_mean(name, names) if names else "; it takes none"
    return f"the sink '{sink}' has no option '{name}', which would have no effect{hint}"
