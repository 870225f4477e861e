"""What the sinks that are directories of files have in common: hidden files, published when the batch is committed."""

from __future__ import annotations

import posixpath
from urllib.parse import quote

import pyarrow.fs as pafs

from plait.errors import SinkError
from plait.faults import reach
from plait.filesystems import for_spark
from plait.query.model import SinkSpec
from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.staging import STAGING, Publication, discard_staged, filesystem_of, not_shared
from plait.spelling import folded


class FileSink(SinkKind):
    """Writes with Spark into the staging area. File names say query, batch and number, so a repeat replaces itself."""

    required = ("path",)
    by_name = True

    def directory(self, spec: SinkSpec) -> str:
        """Return the directory the files are published in."""
        path = next((value for name, value in spec.options if folded(name) == "path"), None)
        if not path:
            raise SinkError(f"a sink '{self.name}' needs the path to write to: path='out'")
        return path

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Stage the results."""
        directory = self.directory(sink.spec)
        prefix = f"{quote(results.query, safe='')}-{results.batch:08d}"
        staged = posixpath.join(directory, STAGING, prefix)
        options = {name: value for name, value in sink.spec.options if folded(name) != "path"}
        results.frame().write.format(self.name).options(**options).mode("overwrite").save(for_spark(staged))
        reach("staged")
        filesystem, path = filesystem_of(staged)
        infos = filesystem.get_file_info(pafs.FileSelector(path))
        names = sorted(info.base_name for info in infos if info.base_name.startswith("part-"))
        if len(names) < results.files:  # a task each, all of which had rows to write
            raise not_shared(directory)
        return tuple(
            Publication(
                staged=posixpath.join(staged, name),
                final=posixpath.join(directory, f"{prefix}-{number:05d}.{name.split('.', 1)[1]}"),
            )
            for number, name in enumerate(names)
        )

    def recover(self, spec: SinkSpec, query: str) -> None:
        """Delete what is staged still: it belongs to no committed batch."""
        discard_staged(self.directory(spec), quote(query, safe="") + "-")
