"""Identifiers of stores and edges, derived from content alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from plait.plan.model import Member, Place, Probed
from plait.plan.relations import member_name
from plait.query.predicates import Conjunction, Residual, by_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """One step of a path by content, or the starting member without matches."""

    member: Member
    predicates: Conjunction[Probed] = ()
    parts: tuple[Member, ...] = ()


Path: TypeAlias = tuple[Arrow, ...]
"""A probe path from its starting member on."""

_SHORTEST_DIGEST = 4


def edge_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Name the last step of every path: its stores, and a digest of its content where these do not tell it apart.

    Two paths over the same stores differ in selections, windows or predicates.
    """
    groups: dict[str, list[Path]] = {}
    for path in paths:
        groups.setdefault("→".join(member_name(arrow.member) for arrow in path), []).append(path)
    names: dict[Path, str] = {}
    for name, group in groups.items():
        if len(group) == 1:
            names[group[0]] = name
        else:
            names.update((path, f"{name}~{digest}") for path, digest in _digests(group).items())
    return names


def _digests(paths: list[Path]) -> dict[Path, str]:
    """Return the shortest digests, all of one length, that tell the paths apart."""
    full = {path: blake2b(_content(path).encode(), digest_size=16).hexdigest() for path in paths}
    length = _SHORTEST_DIGEST
    while len({digest[:length] for digest in full.values()}) < len(full):
        length += 1
    return {path: digest[:length] for path, digest in full.items()}


def _content(path: Path) -> str:
    return repr(
        [
            (
                *_member_content(arrow.member),
                *content_of(arrow.predicates),
                *(_member_content(part) for part in arrow.parts),
            )
            for arrow in path
        ]
    )


def content_of(predicates: Conjunction[Probed]) -> tuple[object, ...]:
    """Return what a step requires, for ordering and digests: equalities alone where there is nothing else.

    Identifiers in checkpoints come of it, so it stays as it was first written.
    """
    found = by_kind(predicates)
    return (
        [(each.left.at, each.left.name, each.right.name) for each in found.equalities],
        *(
            f"SpanMatch(position={each.left.at}, probe_key={each.left.name!r}, store_key={each.right.name!r}, "
            f"low={each.low}, high={each.high})"
            for each in found.bands
        ),
        *(f"Check({residual_content(each)})" for each in found.residuals),
    )


def residual_content(residual: Residual[Place[Any]]) -> str:
    """Return a residual predicate, for digests, as it was first written."""
    formula = f"Formula(sql={residual.sql!r}, text={residual.text!r}, is_function={residual.is_function})"
    return f"formula={formula}, operands={tuple((place.at, place.name) for place in residual.operands)}"


def _member_content(member: Member) -> tuple[object, ...]:
    return member.store, member.ordinal, member.selection.sql, member.window_us
