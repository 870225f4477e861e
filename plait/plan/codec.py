"""Plan ↔ JSON, for checkpoints.

The JSON mirrors the dataclasses field by field: records are objects, tuples are arrays. Nothing is left out, so that a
field added later is missed in an old file rather than guessed; but for fields that say by their absence that there is
nothing (`_LEFT_OUT`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from plait.errors import CheckpointError
from plait.plan.model import Plan, ProbeTree, Requirement, Step, Store

FORMAT = 6
"""Version of the JSON. Raise it whenever a field of the plan model changes."""

_STORED_AS = {"residual_filters": "narrowings"}
"""Fields that stand under an earlier name in the JSON, so that plans of this format are read whoever wrote them."""

_LEFT_OUT = frozenset({"coming", "counts", "waits"})
"""Fields that are not in the JSON while they are empty: plans without are those of before the field was added."""


_PARTS = (Store, ProbeTree, Step, Requirement)


def encode(plan: Plan, written: PartTexts | None = None) -> str:
    """Return the plan as JSON text, the same text for an equal plan. `written`: what is known of plans before it, of
    which most parts may be in this one.
    """
    known = PartTexts() if written is None else written
    text = _record_text(plan, known)
    known.forget_all_but(plan)
    return f'{{"format":{FORMAT},"plan":{text}}}'


@dataclass(slots=True)
class PartTexts:
    """The JSON of stores, why they keep what they do, trees and steps that have been written, each by the very object
    it is of. `most`: so many are kept, some of them of plans that are gone.
    """

    texts: dict[int, tuple[object, str]] = field(default_factory=dict)
    most: int = 0

    def of(self, part: Store | ProbeTree | Step | Requirement) -> str:
        """Return the JSON of a part."""
        known = self.texts.get(id(part))
        if known is None:
            known = self.texts[id(part)] = part, _record_text(part, self)
        return known[1]

    def learn(self, plan: Plan) -> None:
        """Write the parts of a plan that will have to be written, before somebody waits for that."""
        for store in plan.stores:
            self.of(store)
        for tree in plan.trees:
            self.of(tree)

    def forget_all_but(self, plan: Plan) -> None:
        """Let go of the parts that are not in a plan, once these are many."""
        if len(self.texts) <= self.most:
            return
        live = {id(part) for part in (*plan.stores, *plan.trees)}
        live.update(id(need) for store in plan.stores for need in store.requirements)
        live.update(id(step) for tree in plan.trees for step in tree.steps())
        texts = dict(self.texts)  # another thread may write meanwhile
        self.texts = {key: known for key, known in texts.items() if key in live}
        self.most = 2 * len(live)


def _record_text(record: Any, known: PartTexts) -> str:
    """Return a record as `_to_plain` and JSON would have it, its parts as they are known."""
    return "{" + ",".join(f'"{name}":{_text(value, known)}' for name, value in _written(record)) + "}"


def _written(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record that are in its JSON, under the names they have there."""
    for each in fields(record):
        value = getattr(record, each.name)
        if each.init and (value or each.name not in _LEFT_OUT):
            yield _stored_as(each.name), value


def _text(value: Any, known: PartTexts) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], _PARTS):
        return "[" + ",".join(map(known.of, value)) + "]"
    return json.dumps(_to_plain(value), ensure_ascii=False, separators=(",", ":"))


def decode(text: str) -> Plan:
    """Return the plan that was encoded; raises CheckpointError if the text is no plan of this format."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise CheckpointError(
            f"a stored plan is not JSON ({error}); the file is damaged, restore it or use a fresh checkpoint"
        ) from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise CheckpointError(
            f"a stored plan has format {found}, this version of Plait reads format {FORMAT}; "
            "open the checkpoint with the version that wrote it, or use a fresh one"
        )
    try:
        plan = _from_plain(Plan, document["plan"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"a stored plan of format {FORMAT} is incomplete or damaged ({error!r}); "
            "restore the file or use a fresh checkpoint"
        ) from error
    assert isinstance(plan, Plan)
    return plan


def _to_plain(value: Any) -> Any:
    """Return records as dicts and tuples as lists, all the way down; what a record works out by itself is left out."""
    if is_dataclass(value):
        return {name: _to_plain(each) for name, each in _written(value)}
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return value


def _from_plain(kind: Any, value: Any) -> Any:
    """Build what the type annotation `kind` asks for; raises TypeError for a value of another type."""
    if is_dataclass(get_origin(kind) or kind):
        return _record(kind, value)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), value)
    if get_origin(kind) in (Union, UnionType):
        wanted = [option for option in get_args(kind) if option is not NoneType]
        if len(wanted) > 1:  # records, told apart by their fields
            wanted = [option for option in wanted if isinstance(value, dict) and value.keys() == _stored_names(option)]
        return None if value is None else _from_plain(wanted[0], value)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise TypeError(f"expected one of {get_args(kind)}, found {value!r}")
        return value
    if kind is float and type(value) in (int, float):
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value


def _record(kind: Any, value: Any) -> Any:
    hints = _hints(kind)
    if not isinstance(value, dict) or value.keys() | _LEFT_OUT != _stored_names(kind) | _LEFT_OUT:
        found = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise TypeError(
            f"expected a {(get_origin(kind) or kind).__name__} with {sorted(_stored_names(kind))}, found {found}"
        )
    return (get_origin(kind) or kind)(
        **{
            name: _from_plain(hint, value[_stored_as(name)])
            for name, hint in hints.items()
            if name not in _LEFT_OUT or name in value
        }
    )


def _tuple(items: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {type(value).__name__}")
    if items[-1:] == (Ellipsis,):
        return tuple(_from_plain(items[0], item) for item in value)
    return tuple(_from_plain(item, part) for item, part in zip(items, value, strict=True))


def _stored_as(field: str) -> str:
    return _STORED_AS.get(field, field)


@cache
def _stored_names(kind: Any) -> frozenset[str]:
    return frozenset(map(_stored_as, _hints(kind)))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of a record's fields, with those that a generic one was given."""
    origin = get_origin(kind) or kind
    given = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=True))
    hints = get_type_hints(origin)
    return {field.name: _given(hints[field.name], given) for field in fields(origin) if field.init}


def _given(hint: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return given[hint]
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(given[each] for each in parameters)] if parameters else hint
