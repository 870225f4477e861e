"""Small real buckets, and descriptions of buckets that need no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.state.buckets import write_bucket
from plait.state.model import Bucket, Layout
from plait.state.storage import Storage

A, B = "#k bigint `a`", "#k bigint `b`"


def layout(*keys: str, columns: tuple[str, ...] = ("id",), has_tau: bool = True, selections: int = 1) -> Layout:
    names = tuple(f"`x` > {n}" for n in range(selections))
    return Layout(columns=columns, keys=keys, values=(), selections=names, has_tau=has_tau)


def described(**changes: Any) -> Bucket:
    """A bucket that has no file."""
    values: dict[str, Any] = {
        "store": "s",
        "partition": 0,
        "path": "stores/s/0/b.arrow",
        "rows": 10,
        "bytes": 1000,
        "batch_min": 0,
        "batch_max": 0,
        "tau_min": 0,
        "tau_max": 0,
        "sort_key": (A,),
        "layout": layout(A),
        "checksum": "xxh3:0",
    }
    return Bucket(**{**values, **changes})


def written(
    directory: Path | str,
    rows: dict[str, list[Any]],
    *,
    indexes: tuple[tuple[str, ...], ...] = ((A,),),
    name: str = "0-0",
    store: str = "s",
    batch: int = 0,
) -> tuple[Storage, Bucket]:
    """Write int64 columns as a bucket."""
    storage = Storage.open(str(directory))
    table = pa.table({column: pa.array(values, pa.int64()) for column, values in rows.items()})
    raw = tuple(column for column in rows if not column.startswith("#"))
    keys = tuple(column for column in rows if column.startswith("#k"))
    bucket = write_bucket(
        storage,
        store=store,
        partition=0,
        name=name,
        table=table,
        layout=layout(*keys, columns=raw, has_tau="#tau" in rows, selections=2 if "#bits" in rows else 1),
        indexes=indexes,
        batch_min=batch,
        batch_max=batch,
    )
    return storage, bucket
