"""Files that stay hidden until their batch is committed: sinks' results and dead letters.

A file is written to ``_staging`` inside its final directory (names with a leading underscore are invisible to Spark,
Arrow and Hive readers) and renamed by `publish` once the manifest that names it exists. Publishing twice is harmless,
so recovery simply publishes the last manifest again.

A file that is not staged any more has been published if it is in its place. If it is in neither place, that depends:
after a start, the run before may have published it and a reader may have taken it away since; while a run knows that
it has not published it, the file system is not mounted, or somebody has removed it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from plait import filesystems
from plait.errors import SinkError
from plait.faults import reach

STAGING = "_staging"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A staged result file and the place it is renamed to once the manifest that names it is committed (absolute
    URIs).
    """

    staged: str
    final: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """An open place to write to. `path` is relative to `filesystem`."""

    filesystem: pafs.FileSystem
    path: str
    publication: Publication


def stage(directory: str, name: str) -> StagedFile:
    """Prepare a hidden file that will be published as ``directory/name``. Raises SinkError if the directory cannot be
    made.
    """
    staged, final = posixpath.join(directory, STAGING, name), posixpath.join(directory, name)
    filesystem, path = locate(staged)
    try:
        filesystem.create_dir(posixpath.dirname(path), recursive=True)
    except OSError as error:
        raise SinkError(
            f"cannot write to '{directory}': {error}. Check that the path exists and is writable."
        ) from error
    return StagedFile(filesystem=filesystem, path=path, publication=Publication(staged=staged, final=final))


def locate(uri: str) -> tuple[pafs.FileSystem, str]:
    """Return the filesystem of a path or URI and the path on it. Raises SinkError for an unknown kind of address."""
    if uri.startswith("file:"):
        return pafs.LocalFileSystem(), unquote(urlsplit(uri).path)
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return pafs.LocalFileSystem(), uri
    place, _, path = rest.partition("/")
    try:
        # By its root, for which one connection per process serves all files. The path is taken as Hadoop takes it,
        # which does not decode it.
        filesystem, root = filesystems.filesystem_of(f"{scheme}://{place}/")
    except ValueError as error:
        raise SinkError(
            f"cannot write to '{uri}': {error}. Use a local directory, or install fsspec and its package for this "
            "storage."
        ) from error
    return filesystem, posixpath.join(root, path)


def require_staged(publications: Iterable[Publication]) -> None:
    """Raise SinkError unless this process sees every staged file. Ask before the commit: a file that is missing after
    it counts as published.
    """
    for publication in publications:
        filesystem, staged = locate(publication.staged)
        if filesystem.get_file_info(staged).type == pafs.FileType.NotFound:
            raise directory_not_shared(posixpath.dirname(publication.final))


def directory_not_shared(directory: str) -> SinkError:
    """Return the error for a sink's directory in which the driver does not find what a task has written."""
    return SinkError(
        f"'{directory}' is not shared: what a task wrote there on its worker is not there on the driver. Write to a "
        "path or URI that driver and workers share (a network file system, hdfs://, s3://), or run with --master "
        "'local[*]'. If it is shared, a second run on the same checkpoint has cleared it: let one of them go on alone."
    )


def discard_staged(directory: str, names: re.Pattern[str]) -> None:
    """Delete what is staged under these names; others may share the directory."""
    filesystem, path = locate(posixpath.join(directory, STAGING))
    for info in filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
        if not names.fullmatch(info.base_name):
            continue
        if info.type == pafs.FileType.Directory:
            filesystem.delete_dir(info.path)
        else:
            filesystem.delete_file(info.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpublished:
    """A staged file that could not be renamed now, and why. It stays where it is, to be tried again."""

    publication: Publication
    reason: str

    def is_in(self, directory: str | None) -> bool:
        """Tell whether it was to appear in this directory."""
        return directory is not None and self.publication.final.startswith(posixpath.join(directory, ""))


def publish(publications: Iterable[Publication], *, may_be_out: bool = False) -> tuple[Unpublished, ...]:
    """Make staged files visible; those already published are left alone. Return those that could not be renamed: they
    keep no other from being published. `may_be_out`: a run that has ended may have published them, and a reader may
    have taken them away.

    What Spark staged as a directory goes as a whole: nothing is left of it.
    """
    directories: set[str] = set()
    failed = []
    for publication in publications:
        try:
            _move(publication, may_be_out)
        except (OSError, SinkError) as error:
            reason = f"cannot publish '{publication.final}': {error}. It is tried again once the path is writable."
            failed.append(Unpublished(publication=publication, reason=reason))
        directories |= _staged_directory(publication)
    for each in failed:
        directories -= _staged_directory(each.publication)
    for directory in sorted(directories):
        filesystem, path = locate(directory)
        reach("clear")
        with suppress(OSError):  # the results are out; recovery clears up what is left here
            filesystem.delete_dir(path)
    return tuple(failed)


def _move(publication: Publication, may_be_out: bool) -> None:
    filesystem, staged = locate(publication.staged)
    _, path = locate(publication.final)
    if filesystem.get_file_info(staged).type == pafs.FileType.NotFound:
        if may_be_out or filesystem.get_file_info(path).type != pafs.FileType.NotFound:
            return
        raise SinkError(
            f"it is not there, and '{publication.staged}', which it is to be made of, is not either. If its file "
            "system is not mounted, mount it; if the file was removed, what was in it is lost"
        )
    reach("publish")
    if "=" in posixpath.basename(posixpath.dirname(path)):  # a partition that this may be the first file of
        filesystem.create_dir(posixpath.dirname(path), recursive=True)
    filesystem.move(staged, path)


def _staged_directory(publication: Publication) -> set[str]:
    """Return the directory that Spark staged this file in, nothing if a task staged the file alone."""
    above, _, below = publication.staged.rpartition(f"/{STAGING}/")
    return {posixpath.join(above, STAGING, below.split("/")[0])} if "/" in below else set()


__all__ = [
    "STAGING",
    "Publication",
    "StagedFile",
    "Unpublished",
    "directory_not_shared",
    "discard_staged",
    "locate",
    "publish",
    "require_staged",
    "stage",
]
