"""What a program passes: texts, paths, numbers and mappings; what is something else is refused with what was found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any

from plait.errors import OptionError
from plait.filesystems import absolute_path


def shown(value: object) -> str:
    """Return a value as a message shows it: its type, and the value itself if that is short."""
    if value is None:
        return "None"
    text = repr(value)
    is_short = isinstance(value, str | Number | bytes | list | tuple) and len(text) <= 100
    return type(value).__name__ + (f" {text}" if is_short else "")


def text(owner: str, argument: str, value: object, example: str) -> str:
    """Return a text. Raises OptionError for anything else."""
    if not isinstance(value, str):
        raise OptionError(f"{owner}: {argument} is {shown(value)}; expected a text such as {example}")
    return value


def names(owner: str, argument: str, value: object) -> tuple[str, ...]:
    """Return names, each once: of one text or of several. Raises OptionError for anything else.

    >>> names("explain", "queries", "late"), names("explain", "queries", ["late", "early", "late"])
    (('late',), ('late', 'early'))
    """
    given = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    odd = [each for each in given if not isinstance(each, str)]
    if odd:
        raise OptionError(f"{owner}: {argument} has {shown(odd[0])}; expected a name or several, such as ['a', 'b']")
    return tuple(dict.fromkeys(given))


def path(owner: str, argument: str, value: object) -> str:
    """Return a path made absolute, a URI as it is. Raises OptionError for anything else."""
    if not isinstance(value, str | os.PathLike) or not (given := str(os.fspath(value))).strip():
        raise OptionError(f"{owner}: {argument} is {shown(value)}; expected a path or URI")
    return absolute_path(given)


def mapping(owner: str, argument: str, value: object, example: str) -> dict[str, Any]:
    """Return a mapping with texts for keys; empty for None. Raises OptionError for anything else."""
    if value is None:
        return {}
    odd = [key for key in value if not isinstance(key, str)] if isinstance(value, Mapping) else []
    if odd:
        raise OptionError(f"{owner}: {argument} has the key {odd[0]!r}; expected texts such as in {example}")
    if not isinstance(value, Mapping):
        raise OptionError(f"{owner}: {argument} is {shown(value)}; expected a dictionary such as {example}")
    return dict(value)


def option_text(owner: str, name: str, value: object) -> str:
    """Return the value of an option as a script would say it. Raises OptionError for one that no script could."""
    if is_truth(value):
        return str(value).lower()
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if not isinstance(value, str | Number):
        raise OptionError(f"{owner}: option '{name}' is {shown(value)}; expected a text, a number, True or False")
    return str(value)


def number(value: object) -> Any:
    """Return a number of NumPy's as Python's; everything else as it is, for others to judge. True is no number."""
    if is_truth(value):
        return str(value)
    return value.item() if isinstance(value, Number) and hasattr(value, "item") else value


def is_truth(value: object) -> bool:
    """Tell whether a value is True or False; those of NumPy are no `bool`."""
    return isinstance(value, bool) or type(value).__name__ == "bool"


__all__ = ["is_truth", "mapping", "number", "option_text", "path", "shown", "text"]
