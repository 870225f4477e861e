"""Join predicates between texts: LIKE with wildcards and escapes, and the distance of strings."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from tests.property.expressions import Expression, apply

_ESCAPED_BACKSLASH = r"replace({0}, '\\', '\\\\')"


def like(rng: random.Random, a: Expression, b: Expression) -> Expression:
    """Return ``a LIKE`` a pattern made of `b`, or what both make together ``LIKE`` a constant one."""
    sign = rng.choice(("LIKE", "LIKE", "NOT LIKE"))
    if rng.random() < 0.2:
        shown, constant = rng.choice((("%a\\\\_%", "%a\\_%"), ("_%_", "_%_"), ("", ""), ("%\\\\\\\\%", "%\\\\%")))
        together = apply("({0} || {1})", lambda x, y: x + y, a, b, kind="s")
        return apply(f"{{0}} {sign} '{shown}'", lambda v: is_like(v, constant) == (sign == "LIKE"), together, kind="b")
    escape = "!" if rng.random() < 0.15 else "\\"
    pattern = _pattern(rng, b, escape)
    tail = " ESCAPE '!'" if escape == "!" else ""
    return apply(
        f"{{0}} {sign} {{1}}{tail}", lambda v, p: is_like(v, p, escape) == (sign == "LIKE"), a, pattern, kind="b"
    )


def _pattern(rng: random.Random, operand: Expression, escape: str) -> Expression:
    """Return a pattern with wildcards around and within. Spark refuses an escape character before any but the three."""
    if escape == "!":
        found = apply("replace({0}, '%', '!%')", lambda v: v.replace("%", "!%"), operand, kind="s")
    else:
        found = rng.choice((_first, _first, _as_it_is, _literally))(operand)
    before, after = rng.choice((("", ""), ("", "%"), ("%", "%"), ("%", ""), ("_", "%"), ("", "_"), ("", "%_")))
    if before or after:
        text = " || ".join(part for part in (before and f"'{before}'", "{0}", after and f"'{after}'") if part)
        found = apply(f"({text})", lambda v: before + v + after, found, kind="s")
    return found


def _first(operand: Expression) -> Expression:
    return apply("substring({0}, 1, 1)", lambda v: v[:1], operand, kind="s")


def _as_it_is(operand: Expression) -> Expression:
    """Return the text with its own wildcards."""
    return apply(_ESCAPED_BACKSLASH, lambda v: v.replace("\\", "\\\\"), operand, kind="s")


def _literally(operand: Expression) -> Expression:
    """Return a pattern for the text itself."""
    text = rf"replace(replace({_ESCAPED_BACKSLASH}, '%', '\\%'), '_', '\\_')"
    return apply(text, lambda v: re.sub(r"([\\%_])", r"\\\1", v), operand, kind="s")


def is_like(value: str, pattern: str, escape: str = "\\") -> bool:
    """Tell whether the whole value matches."""
    parts: list[str] = []
    characters = iter(pattern)
    for each in characters:
        if each == escape:
            parts.append(re.escape(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(each, re.escape(each)))
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


def string_distance(rng: random.Random, a: Expression, b: Expression) -> Expression:
    """Return a comparison of how many characters have to be changed."""
    choices: tuple[tuple[str, Callable[[str, str], Any]], ...] = (
        ("levenshtein({0}, {1}) < 2", lambda x, y: distance(x, y) < 2),
        ("levenshtein({0}, {1}) <= 2", lambda x, y: distance(x, y) <= 2),
        ("levenshtein({0}, {1}) = 1", lambda x, y: distance(x, y) == 1),
        ("levenshtein({0}, {1}) > 3", lambda x, y: distance(x, y) > 3),
        ("levenshtein({0}, {1}) < length({0})", lambda x, y: distance(x, y) < len(x)),
    )
    text, function = rng.choice(choices)
    return apply(text, function, a, b, kind="b")


def distance(one: str, other: str) -> int:
    """Return the smallest number of insertions, deletions and replacements of characters (Wagner and Fischer)."""
    row = list(range(len(other) + 1))
    for number, mine in enumerate(one, 1):
        above, row[0] = row[0], number
        for at, theirs in enumerate(other, 1):
            above, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, above + (mine != theirs))
    return row[-1]
