"""Remember what was outside the checkpoint when it was last started, to tell what has changed since.

Two things can change unnoticed between runs: the files of a table, which is read once and then kept, and what a query
writes into a folder that has results already: columns, format, and options such as ``header``. Both are warned of.
``remembered.json`` holds what is compared; it is replaced at every start, and a checkpoint without it has nothing to
compare.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from plait.errors import PlaitError
from plait.plan.model import Plan
from plait.runtime.notice import Notice
from plait.runtime.outputs.binding import Binding
from plait.sinks.staging import locate
from plait.spelling import folded
from plait.state.model import Bucket
from plait.state.storage import Storage

PATH = "remembered.json"
_MOST_FOLDERS = 64
"""So many folders stay known that no query writes now."""

_UNSEEN = frozenset({"path", "existing", "compression", "codec", "maxrecordsperfile"})
"""Options of sinks that readers need not know."""

_MOST_FILES = 10_000
"""Of more files it is not asked what they are: that would take longer than it is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The files of a table: how many, how large in all, and a digest of names, sizes and times of change."""

    files: int
    bytes: int
    digest: str

    def __str__(self) -> str:
        return f"{self.files} {'file' if self.files == 1 else 'files'} of {self.bytes:,} bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Which columns a query writes into a folder: (name, type), in order; and by which options of those that readers
    have to know: (name, value). None: an earlier version did not remember them.
    """

    query: str
    format: str
    columns: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Tables by name as they were when they were read, folders by path with what is written there, the latest last."""

    tables: Mapping[str, Fingerprint]
    outputs: Mapping[str, Written]


def read_remembered(storage: Storage) -> Remembered:
    """Return what was remembered; nothing if there is nothing, or nothing that this version understands."""
    try:
        document = json.loads(storage.read_bytes(PATH)) if storage.exists(PATH) else {}
        return Remembered(
            tables={name: Fingerprint(**values) for name, values in document.get("tables", {}).items()},
            outputs={
                path: Written(
                    query=values["query"],
                    format=values["format"],
                    columns=tuple((name, kind) for name, kind in values["columns"]),
                    options=_pairs(values.get("options")),
                )
                for path, values in document.get("outputs", {}).items()
            },
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return Remembered(tables={}, outputs={})


def _pairs(values: list[list[str]] | None) -> tuple[tuple[str, str], ...] | None:
    return None if values is None else tuple((name, value) for name, value in values)


def write_remembered(storage: Storage, remembered: Remembered) -> None:
    """Replace what is remembered."""
    document = {
        "tables": {name: asdict(each) for name, each in sorted(remembered.tables.items())},
        "outputs": {path: asdict(each) for path, each in remembered.outputs.items()},
    }
    storage.write_file(PATH, json.dumps(document, indent=1, ensure_ascii=False).encode())


def changed_outside(
    storage: Storage,
    plan: Plan,
    committed: Iterable[Bucket],
    stored: Iterable[Bucket],
    frames: Mapping[str, DataFrame],
    bindings: Iterable[Binding],
) -> tuple[Notice, ...]:
    """Return what has changed since the checkpoint was last started, and remember how it is now. `committed`: what the
    last manifest names, `stored`: what is there now that tables have been loaded.
    """
    kept = kept_tables(plan, committed, stored)
    read = {store.source for store in plan.stores if store.is_table}
    now = remembered_now({name: frame for name, frame in frames.items() if name in read}, bindings)
    remembered, notices = changes(read_remembered(storage), now, kept, has_files)
    write_remembered(storage, remembered)
    return notices


def changes(
    before: Remembered, now: Remembered, kept: frozenset[str], has_files: Callable[[str], bool]
) -> tuple[Remembered, tuple[Notice, ...]]:
    """Return what to remember from now on, and warnings. `kept`: the tables whose rows were read by an earlier run.

    A table that was just read is remembered as it is now; one that is kept, as it was when it was read, so that the
    warning comes back until something is done. The last folders that no query writes now stay known.
    """
    tables = {**now.tables, **{name: fingerprint for name, fingerprint in before.tables.items() if name in kept}}
    notices = [
        Notice(kind="table changed", of=name, text=_table_text(name, before.tables[name], now.tables[name]))
        for name in sorted(kept & set(before.tables) & set(now.tables))
        if before.tables[name] != now.tables[name]
    ]
    for path in sorted(set(before.outputs) & set(now.outputs)):
        written = now.outputs[path]
        difference = _difference(before.outputs[path], written)
        if difference and has_files(path):
            text = _output_text(path, written, difference)
            notices.append(Notice(kind="output changed", of=written.query, text=text))
    return Remembered(tables=tables, outputs=_latest(before.outputs, now.outputs)), tuple(notices)


def _latest(before: Mapping[str, Written], now: Mapping[str, Written]) -> dict[str, Written]:
    """Return what is written now behind what was written before, of which the latest stay known."""
    others = [(path, written) for path, written in before.items() if path not in now]
    return dict([*others[-_MOST_FOLDERS:], *sorted(now.items())])


def has_files(folder: str) -> bool:
    """Tell whether readers find files in a folder."""
    try:
        filesystem, path = locate(folder)
        infos = filesystem.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    except (PlaitError, pa.ArrowException, OSError):
        return False
    return any(info.type == pafs.FileType.File and not info.base_name.startswith(("_", ".")) for info in infos)


def _table_text(table: str, then: Fingerprint, now: Fingerprint) -> str:
    today = str(now) if str(now) != str(then) else "as many, but written or named otherwise"
    return (
        f"table '{table}' has changed since it was read: then {then}, now {today}. Its rows of then are used, because "
        "a table is read once for a checkpoint. To use the new ones give the table another name, also in the queries, "
        "or start a new checkpoint"
    )


def _output_text(path: str, written: Written, difference: str) -> str:
    return (
        f"query '{written.query}' now writes otherwise than the files in '{path}' were written: {difference}. Readers "
        "take the folder for one table: give the query another path, or remove the old files"
    )


def _difference(before: Written, now: Written) -> str:
    """Return how the columns differ. Their order matters only where files do not name them."""
    then, present = dict(before.columns), dict(now.columns)
    parts = [f"new '{name}' {present[name].upper()}" for name in present if name not in then]
    parts += [f"gone '{name}' {then[name].upper()}" for name in then if name not in present]
    parts += [
        f"'{name}' {present[name].upper()} instead of {then[name].upper()}"
        for name in present
        if name in then and then[name] != present[name]
    ]
    if not parts and now.format == "csv" and before.columns != now.columns:
        parts = ["columns in another order"]
    if before.format != now.format:
        return ", ".join([*parts, f"{now.format} files instead of {before.format}"])
    return ", ".join([*parts, *_other_options(before, now)])


def _other_options(before: Written, now: Written) -> list[str]:
    then, present = dict(before.options or ()), dict(now.options or ())
    if before.options is None or now.options is None:
        return []
    return [
        f"{name} {_quoted(present.get(name))} instead of {_quoted(then.get(name))}"
        for name in dict.fromkeys([*present, *then])
        if present.get(name) != then.get(name)
    ]


def _quoted(value: str | None) -> str:
    return "none" if value is None else f"'{value}'"


def remembered_now(tables: Mapping[str, DataFrame], bindings: Iterable[Binding]) -> Remembered:
    """Return what there is to remember at this moment."""
    fingerprints = {name: fingerprint_of(frame) for name, frame in tables.items()}
    return Remembered(
        tables={name: fingerprint for name, fingerprint in fingerprints.items() if fingerprint is not None},
        outputs=dict(_written(bindings)),
    )


def _written(bindings: Iterable[Binding]) -> Iterator[tuple[str, Written]]:
    for binding in bindings:
        spec = binding.sink.spec
        path = dict(spec.options).get("path")
        if path is not None:
            columns = tuple((field.name, field.dataType.simpleString()) for field in binding.output.fields)
            options = tuple(sorted((name, value) for name, value in spec.options if folded(name) not in _UNSEEN))
            yield path, Written(query=binding.query.name, format=spec.format, columns=columns, options=options)


def fingerprint_of(frame: DataFrame) -> Fingerprint | None:
    """Return what can be told of the files behind a DataFrame; None if it has none, or they cannot be looked at."""
    try:
        names = sorted(frame.inputFiles())
        if not names or len(names) > _MOST_FILES:
            return None
        infos = [_info(name) for name in names]
    except (PySparkException, PlaitError, pa.ArrowException, OSError, ValueError):
        return None
    digest = hashlib.sha256()
    for name, info in zip(names, infos, strict=True):
        digest.update(f"{name}\0{info.size}\0{info.mtime_ns}\n".encode())
    return Fingerprint(files=len(names), bytes=sum(info.size or 0 for info in infos), digest=digest.hexdigest()[:16])


def _info(name: str) -> pafs.FileInfo:
    filesystem, path = locate(name if name.startswith("file:") else unquote(name))
    return filesystem.get_file_info([path])[0]


def kept_tables(plan: Plan, committed: Iterable[Bucket], ready: Iterable[Bucket]) -> frozenset[str]:
    """Return the tables of a plan whose stored rows were committed by an earlier run, and not read anew for this
    one.
    """
    paths = {bucket.path for bucket in committed}
    old = {bucket.store for bucket in ready if bucket.path in paths}
    return frozenset(store.source for store in plan.stores if store.is_table and store.source and store.id in old)
