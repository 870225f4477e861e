"""Manifest to JSON values and back.

Records become objects of their fields. Buckets, of which there may be thousands, become one list per field, and in
these the values of `_INTERNED` fields are positions in a list of distinct values. Field types are checked on the way
in, so whatever decodes is a well-formed manifest; fields added to the model later take their default when an older
manifest lacks them.

Manifests of earlier formats are brought into today's form. Format 1 counted what probing showed as sums by source
(`joins`); format 2 keeps series (`plait.stats.cycles`), in which those sums are what was counted before the first
cycle. Format 3 names groups that queries read (`made`), format 4 copies of rows and the tables that put them where they
are (`copies`, `generations`): who does not know them must not go on without. Fields that were added take their defaults
and need nothing.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from plait.state.model import Bucket, Manifest, Past
from plait.stats.cycles import Cycles, Series, from_totals

_INTERNED = ("store", "sort_key", "layout", "partition_by")
_STORED_AS = {"undelivered": "backlog"}
"""Fields of a manifest that stand under an earlier name in the file."""

_SCALARS = frozenset((int, str, bool, float, type(None)))


def to_json(manifest: Manifest) -> dict[str, Any]:
    """Return everything but batch and watermark as JSON values."""
    document: dict[str, Any] = _plain(manifest, skip=("batch", "watermark_us", "buckets", "copies", "pasts"))
    document["buckets"] = _columns(manifest.buckets)
    document["copies"] = _columns(manifest.copies)
    document["pasts"] = [{"since": past.since, "buckets": _columns(past.buckets)} for past in manifest.pasts]
    return {_STORED_AS.get(name, name): value for name, value in document.items()}


def from_json(document: dict[str, Any]) -> Manifest:
    """Return the manifest `to_json` was given; raise ValueError, TypeError, KeyError or IndexError if it cannot be
    one.
    """
    fields_of = {stored: name for name, stored in _STORED_AS.items()}
    values = {
        fields_of.get(name, name): value
        for name, value in document.items()
        if name not in ("format", "checksum", "buckets", "copies", "pasts")
    }
    pasts = tuple(
        Past(since=_typed(past["since"], int), buckets=_buckets(past["buckets"])) for past in document.get("pasts", ())
    )
    copies = _buckets(document["copies"]) if "copies" in document else ()
    given = {"buckets": _buckets(document["buckets"]), "copies": copies, "pasts": pasts}
    manifest = _record(Manifest, values, given=given)
    if not isinstance(manifest, Manifest):
        raise TypeError("not a manifest")
    return manifest


def _plain(value: Any, skip: tuple[str, ...] = ()) -> Any:
    """Return a record as an object, a tuple as a list, a scalar as itself."""
    kind: Any = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, tuple):
        are_plain = _SCALARS.issuperset(map(type, value))  # most of a manifest are long rows of numbers
        return list(value) if are_plain else [_plain(item) for item in value]
    if is_dataclass(value):
        return {name: _plain(getattr(value, name)) for name in _names(kind) if name not in skip}
    raise TypeError(f"{value!r:.80} of {type(value)} has no place in a manifest")


@lru_cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _columns(buckets: tuple[Bucket, ...]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    distinct: dict[str, Any] = {}
    for field in fields(Bucket):
        column = [getattr(bucket, field.name) for bucket in buckets]
        if field.name in _INTERNED:
            places = {value: place for place, value in enumerate(dict.fromkeys(column))}
            distinct[field.name] = [_plain(value) for value in places]
            columns[field.name] = [places[value] for value in column]
        else:
            columns[field.name] = [_plain(value) for value in column]
    return {"rows": len(buckets), "distinct": distinct, "columns": columns}


def _buckets(document: dict[str, Any]) -> tuple[Bucket, ...]:
    count, types_by_name = document["rows"], _hints(Bucket)
    columns = {}
    for name, values in document["columns"].items():
        expected = types_by_name[name]
        if len(values) != count:
            raise ValueError(f"{len(values)} values of {name} for {count} buckets")
        if name in _INTERNED:
            choices = [_typed(value, expected) for value in document["distinct"][name]]
            columns[name] = [choices[_natural(place)] for place in values]
        else:
            columns[name] = [_typed(value, expected) for value in values]
    names = tuple(columns)
    return tuple(Bucket(**dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True))


def _natural(place: Any) -> int:
    if type(place) is not int or place < 0:
        raise ValueError(f"expected a position, found {place!r}")
    return place


def _typed(value: Any, expected: Any) -> Any:
    """Return `value` as `expected` (a scalar type, a record, a tuple of these or an optional), else raise."""
    if expected in (int, str, bool) or expected is type(None):
        if type(value) is expected:
            return value
    elif get_origin(expected) is Literal:
        if value in get_args(expected):
            return value
    elif get_origin(expected) in (Union, types.UnionType):
        if value is None:
            return None
        return _typed(value, next(part for part in get_args(expected) if part is not type(None)))
    elif expected is float:
        if type(value) in (int, float):
            return float(value)
    elif get_origin(expected) is tuple and isinstance(value, list):
        parts = get_args(expected)
        if parts[1:] == (...,):
            return tuple(_typed(item, parts[0]) for item in value)
        return tuple(_typed(item, part) for item, part in zip(value, parts, strict=True))
    elif is_dataclass(expected) and isinstance(value, dict):
        return _record(expected, value, given={})
    raise TypeError(f"expected {expected}, found {value!r:.80}")


def _record(kind: Any, values: dict[str, Any], given: dict[str, Any]) -> Any:
    expected = _hints(kind)
    unknown = sorted(set(values) - set(expected))
    missing = sorted(
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING and field.name not in {*values, *given}
    )
    if unknown or missing:
        raise ValueError(f"{kind.__name__} has unknown fields {unknown} and lacks {missing}")
    return kind(**given, **{name: _typed(value, expected[name]) for name, value in values.items()})


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


FORMAT = 4
READ = (1, 2, 3, 4)


def without_sums(document: dict[str, Any]) -> tuple[dict[str, Any], tuple[Series, ...]]:
    """Return the values of a manifest of format 1 as those of today's, and the series its sums become."""
    totals: dict[tuple[str, ...], tuple[int, int]] = {}
    sources = []
    for source in document["sources"]:
        for seen in source.get("joins", ()):
            sides = sorted(((source["source"], seen["key"]), (seen["other"], seen["other_key"])))
            name = tuple(part for side in sides for part in side)
            pairs, matches = totals.get(name, (0, 0))
            totals[name] = pairs + round(seen["pairs"]), matches + round(seen["matches"])
        sources.append({name: value for name, value in source.items() if name != "joins"})
    series = tuple(from_totals("join", name, counts) for name, counts in sorted(totals.items()))
    return {**document, "sources": sources}, series


def held_to_one_watermark(manifest: Manifest) -> Manifest:
    """Return a manifest that was written before there were bars: every source was held to the one watermark."""
    held = (replace(source, late_before_us=manifest.watermark_us) for source in manifest.sources)
    return replace(manifest, sources=tuple(held))


def with_series(manifest: Manifest, series: tuple[Series, ...]) -> Manifest:
    """Return a manifest with what was known before there were cycles."""
    return replace(manifest, cycles=Cycles(series=series))
