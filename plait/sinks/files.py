"""What the sinks that are directories of files have in common: hidden files, published when the batch is committed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

import pyarrow.fs as pafs

from plait.errors import SinkError
from plait.faults import reach
from plait.filesystems import for_spark
from plait.option_values import (
    CHARSET,
    LOCALE,
    LONG_COUNT,
    WRITTEN_DATE,
    WRITTEN_NTZ,
    WRITTEN_TIME,
    WRITTEN_TIMESTAMP,
    ZONE,
    words,
)
from plait.query.model import SinkSpec
from plait.sinks.claims import Claim, ClaimedDirectory, Existing, file_name, tag_of
from plait.sinks.kind import ResultColumn, Results, Sink, SinkKind
from plait.sinks.options import EXISTING, PARTITION_BY, PATH, SinkProblem, accepting, option_of
from plait.sinks.staging import STAGING, Publication, directory_not_shared, locate
from plait.sinks.storable import Atomic, SparkType
from plait.spelling import did_you_mean, folded

OPTIONS_OF_FILES = (PATH, EXISTING, PARTITION_BY, *accepting(LONG_COUNT, "maxRecordsPerFile"))
"""What all file sinks take."""

CODEC = words("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy")
"""How Spark compresses text."""

OPTIONS_OF_TEXT = (
    *OPTIONS_OF_FILES,
    *accepting(CODEC, "compression"),
    *accepting(WRITTEN_DATE, "dateFormat"),
    *accepting(WRITTEN_TIMESTAMP, "timestampFormat"),
    *accepting(WRITTEN_NTZ, "timestampNTZFormat"),
    *accepting(WRITTEN_TIME, "timeFormat"),
    *accepting(ZONE, "timeZone"),
    *accepting(LOCALE, "locale"),
    *accepting(CHARSET, "encoding", "charset"),
)
"""What file sinks of text take."""

DEFAULTS_OF_TEXT = MappingProxyType(
    {
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
        "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
    }
)
"""Spark's own formats cut timestamps to milliseconds."""

_OWN = frozenset({"path", "existing", "partitionby"})
"""Options that are not for Spark."""


class FileSink(SinkKind):
    """Writes with Spark into the staging area. A file's name says query, batch, number and checkpoint, so a repeat
    replaces itself.

    `defaults` are options for Spark where the user does not say otherwise.
    """

    required = ("path",)
    by_name = True
    defaults: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def directory(self, spec: SinkSpec) -> str:
        """Return the directory the files are published in: a local path, or a URI."""
        path = option_of(spec.options, "path")
        if not path:
            raise SinkError(f"a sink '{self.name}' needs the path to write to: path='out'")
        # A URI's escapes would be taken for those in the names of partitions.
        return unquote(urlsplit(path).path) if path.lower().startswith("file:") else path

    def column_problems(self, spec: SinkSpec, columns: Sequence[ResultColumn]) -> list[SinkProblem]:
        """Look at types, and at the columns that directories are to be named after."""
        problems = super().column_problems(spec, columns)
        given = next((name for name, _ in spec.options if folded(name) == "partitionby"), None)
        if given is not None:
            message = partition_problem(option_of(spec.options, given) or "", columns)
            problems += [] if message is None else [SinkProblem(message=message, option=given)]
        return problems

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Stage the results, in directories for each partition if there are any."""
        directory, tag = self.directory(sink.spec), tag_of(results.checkpoint)
        prefix = f"{quote(results.query, safe='')}-{results.batch:08d}-{tag}"
        staged = posixpath.join(directory, STAGING, prefix)
        self._write(sink.spec, results.rows, for_spark(staged))
        reach("staged")
        filesystem, path = locate(staged)
        infos = filesystem.get_file_info(pafs.FileSelector(path, recursive=True))
        files = (info for info in infos if info.type == pafs.FileType.File and info.base_name.startswith("part-"))
        names = sorted(info.path.rpartition(f"/{prefix}/")[2] for info in files)
        if len(names) < results.tasks:  # a task each, all of which had rows to write
            raise directory_not_shared(directory)
        publications = []
        for number, name in enumerate(names):
            within, base = posixpath.split(name)
            final = f"{file_name(results.query, results.batch, f'{number:05d}', tag)}.{base.split('.', 1)[1]}"
            publications.append(
                Publication(staged=posixpath.join(staged, name), final=posixpath.join(directory, within, final))
            )
        return tuple(publications)

    def _write(self, spec: SinkSpec, frame: Any, path: str) -> None:
        given = {folded(name) for name, _ in spec.options}
        options = {name: value for name, value in self.defaults.items() if folded(name) not in given}
        options |= {name: value for name, value in spec.options if folded(name) not in _OWN}
        # Whatever the session says: what an earlier attempt has staged for partitions that are empty now must go.
        writer = frame.write.format(self.name).options(**options, partitionOverwriteMode="static").mode("overwrite")
        partition_by = option_of(spec.options, "partitionBy")
        if partition_by is not None:
            columns = {folded(name): name for name in frame.columns}
            writer = writer.partitionBy(*(columns[folded(name)] for name in partition_columns(partition_by)))
        writer.save(path)

    def claimed(self, spec: SinkSpec, claim: Claim) -> ClaimedDirectory:
        """Return the directory, and what the user says of results of others in it."""
        return ClaimedDirectory(claim=claim, path=self.directory(spec), existing=_existing(spec))


def _existing(spec: SinkSpec) -> Existing | None:
    value = option_of(spec.options, "existing")
    match None if value is None else value.strip().lower():
        case None | "append" | "overwrite" as chosen:
            return chosen
        case other:
            raise SinkError(f"existing is '{other}'; expected append or overwrite")


_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*?))\s*(?:,|$)")
_IMPOSSIBLE = re.compile(r"void|variant|binary|interval|geometry.*|geography.*|string collate .*")


def partition_columns(value: str) -> tuple[str, ...]:
    """Return the names in ``a, b``; odd ones stand in backquotes. Raises ValueError, saying why, if it is no list."""
    names: list[str] = []
    position = 0
    while position < len(value) or not names:
        match = _NAME.match(value, position)
        name = None if match is None else (match[1] or match[2] or "").replace("``", "`")
        if match is None or not name:
            raise ValueError(f"partitionBy is '{value}'; expected names of columns: 'a, b', odd ones in backquotes")
        if folded(name) in map(folded, names):
            raise ValueError(f"partitionBy names column '{name}' twice; keep one")
        names.append(name)
        position = match.end()
    if value.rstrip().endswith(","):
        raise ValueError(f"partitionBy is '{value}'; remove the superfluous comma")
    return tuple(names)


def partition_problem(value: str, columns: Sequence[tuple[str | None, SparkType | None]]) -> str | None:
    """Say why results with these columns cannot be partitioned so, or None. A name or type that is None is not known
    yet.
    """
    try:
        wanted = partition_columns(value)
    except ValueError as problem:
        return str(problem)
    known = {folded(name): type_ for name, type_ in columns if name is not None}
    is_complete = all(name is not None for name, _ in columns)
    for name in wanted:
        type_ = known.get(folded(name))
        if folded(name) not in known and is_complete:
            hint = did_you_mean(name, (column for column, _ in columns if column is not None))
            return f"partitionBy names '{name}', which is no column of the results{hint}"
        if type_ is not None and not (isinstance(type_, Atomic) and not _IMPOSSIBLE.fullmatch(type_.name)):
            return f"partitionBy names '{name}', which has type {type_}: no directory can be named after that; cast it"
    if is_complete and len(wanted) == len(columns):
        return "partitionBy names all columns of the results, so that none is left for the files; leave one out"
    return None
