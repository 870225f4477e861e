"""Whose results a directory holds: a marker in it that names checkpoints and queries.

A batch's results are published once for each checkpoint. A new checkpoint reads its sources from the start, so onto
the results of another it would add the same once more: that is refused unless the user asks for it. The marker's name
begins with an underscore, so Spark, Arrow and Hive do not take it for data.

A checkpoint restored from a backup finds results of batches that it has not done. They are its own and it is about to
publish them again, so they are removed. Their names say whose they are: ``query-batch-number-checkpoint.ending``.
"""

from __future__ import annotations

import json
import posixpath
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from urllib.parse import quote

import pyarrow.fs as pafs

from plait.errors import SinkError
from plait.faults import reach
from plait.sinks.staging import discard_staged, locate

MARKER = "_plait"
_FORMAT = 1
_TAG = 8
_SPOOLED = re.compile(r"\d{5,8}")
_UNIQUE = r"[0-9a-f]{12}|\d{5,8}"

Existing: TypeAlias = Literal["append", "overwrite"]
"""What to do with results of others: keep them and add to them, or delete them first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose results there are. `checkpoint` is its id, "" for files that were there without a marker; `place`: where
    it lies.
    """

    checkpoint: str
    place: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An owner that wants to write. `adopts`: it has written here before there were markers, if it has written at all.
    `batch` is the last one its checkpoint has committed, -1 for none; results of the batches `waiting` are committed
    but not published yet.
    """

    owner: Owner
    adopts: bool = False
    batch: int = -1
    waiting: frozenset[int] = frozenset()

    @property
    def tag(self) -> str:
        """The part of a file's name that says whose it is."""
        return tag_of(self.owner.checkpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedPlace:
    """What may be done to the place that a claim's results go to. Of itself nothing is: not every sink leaves something
    in a place where others write too.
    """

    claim: Claim

    @property
    def directory(self) -> str | None:
        """The directory of the results, None if they go to none."""
        return None

    def refuse(self) -> None:
        """Raise SinkError if results must not go there, because of what is there. Writes nothing.

        Asked of all places of a run before the first of them is told to `take`. Raises OSError if it cannot be looked
        at now: then the sink is as one that fails, which stops no other.
        """
        return None

    def take(self) -> None:
        """Note that the results there are the claim's, where that can be noted. Repeated before the first delivery if
        it could not be done when the run started. Raises as `refuse` does.
        """
        return None

    def recover(self) -> None:
        """Remove what attempts that were never committed have left, and results of batches that the checkpoint has not
        done. What it has committed has been published by then.
        """
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDirectory(ClaimedPlace):
    """A directory of files. `existing`: what to do with results of others, None to refuse them."""

    path: str
    existing: Existing | None

    @property
    def directory(self) -> str:
        """The directory the files are published in: a local path, or a URI."""
        return self.path

    def refuse(self) -> None:
        """Refuse a directory with results of others, unless an option says what to do with them."""
        problem = refusal(self.path, self.claim)
        if problem is not None and self.existing is None:
            raise SinkError(
                f"query '{self.claim.owner.query}': {problem}. Choose another path, or go on with the checkpoint they "
                "come from, or say existing 'append' to keep them and add to them, existing 'overwrite' to delete them."
            )

    def take(self) -> None:
        """Mark the directory as the claim's; empty it first where the user said so. Only where `refuse` has let it."""
        owners, claim = read_owners(self.path), self.claim
        if owners is not None and claim.owner in owners:
            return
        if self.existing == "overwrite" and refusal(self.path, claim) is not None:
            _empty(self.path)
            owners = None
        elif owners is None and not claim.adopts and any(True for _ in _foreign_files(self.path, claim)):
            owners = (Owner(checkpoint="", place="", query=""),)
        _write_owners(self.path, (*(owners or ()), claim.owner))

    def recover(self) -> None:
        """Delete what is staged still, which belongs to no committed batch, and what batches to come have published."""
        discard_staged(self.path, re.compile(rf".*-{self.claim.tag}(\..*)?"))
        remove_undone(self.path, self.claim)


def tag_of(checkpoint: str) -> str:
    """Return the part of a file's name that tells this checkpoint's results from those of others."""
    return checkpoint[:_TAG]


def file_name(query: str, batch: int, unique: str, tag: str) -> str:
    """Return the name of a result file, without its ending."""
    return f"{quote(query, safe='')}-{batch:08d}-{unique}-{tag}"


def refusal(directory: str, claim: Claim) -> str | None:
    """Say why the owner must not write to the directory without being told what to do with what it holds, or None."""
    owners = read_owners(directory)
    if owners is None:
        foreign = None if claim.adopts else next(_foreign_files(directory, claim), None)
        return None if foreign is None else f"'{directory}' holds files that are not its results ('{foreign}')"
    if any(_is_own(owner, claim) for owner in owners):
        return None
    other = owners[-1]
    if other == replace(claim.owner, place=other.place):
        return (
            f"'{directory}' holds results of this checkpoint as it lies in '{other.place}': if both go on, as when one "
            "is a copy, the same results are added twice (delete the one that is not to go on, and this is its own)"
        )
    if other.checkpoint == claim.owner.checkpoint:
        return f"'{directory}' holds results of query '{other.query}' of this checkpoint"
    whose = f" (query '{other.query}', {other.place})" if other.checkpoint else ""
    return f"'{directory}' holds results of another checkpoint{whose}, to which the same might be added once more"


def _is_own(owner: Owner, claim: Claim) -> bool:
    """Tell whether this is who claims: also if the checkpoint has moved, so that there is none where it was."""
    if owner == claim.owner:
        return True
    if owner != replace(claim.owner, place=owner.place):
        return False
    filesystem, path = locate(owner.place)
    return bool(filesystem.get_file_info(path).type == pafs.FileType.NotFound)


def remove_later(directory: str, name: str, tag: str, batch: int) -> None:
    """Delete files of `name` (a query's or a stream's) that the tag's checkpoint has published in batches after this
    one, in the directory itself.
    """
    wanted = _names(name, f"-{tag}")
    filesystem, root = locate(directory)
    for info in filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True)):
        match = wanted.fullmatch(info.base_name)
        if match is not None and int(match[1]) > batch:
            reach("undo")
            filesystem.delete_file(info.path)


def remove_undone(directory: str, claim: Claim) -> None:
    """Delete published results of batches that the claim's checkpoint has not done, or will publish again."""
    owners = read_owners(directory) or (claim.owner,)
    queries = {owner.query for owner in owners if owner.checkpoint == claim.owner.checkpoint}
    is_alone = all(owner.checkpoint == claim.owner.checkpoint for owner in owners)
    tag = f"-{claim.tag}" if not is_alone else f"(?:-{claim.tag})?"
    names = [_names(query, tag) for query in queries]
    filesystem, root = locate(directory)
    for path in list(_data_files(directory)):
        for match in filter(None, (name.fullmatch(posixpath.basename(path)) for name in names)):
            batch, unique = int(match[1]), match[2]
            if batch > claim.batch or (batch in claim.waiting and _SPOOLED.fullmatch(unique)):
                reach("undo")
                filesystem.delete_file(posixpath.join(root, path))


def _names(name: str, tag: str) -> re.Pattern[str]:
    """Return what the names of files of a query or stream look like; its groups are batch and number or attempt."""
    return re.compile(rf"{re.escape(quote(name, safe=''))}-(\d{{8,}})-({_UNIQUE}){tag}\.[^-]+")


def _foreign_files(directory: str, claim: Claim) -> Iterator[str]:
    """Yield the files of a directory without a marker that, by their names, are not the claim's: somebody may have
    deleted the marker and left its results.
    """
    own = _names(claim.owner.query, f"-{claim.tag}")
    return (path for path in _data_files(directory) if own.fullmatch(posixpath.basename(path)) is None)


def read_owners(directory: str) -> tuple[Owner, ...] | None:
    """Return what the directory's marker says, None if it has none. Raises SinkError for one that cannot be read."""
    filesystem, path = locate(posixpath.join(directory, MARKER))
    if filesystem.get_file_info(path).type != pafs.FileType.File:
        return None
    try:
        with filesystem.open_input_stream(path) as stream:
            document = json.loads(stream.read())
        if document["format"] != _FORMAT:
            raise ValueError(f"its format is {document['format']}, this Plait knows {_FORMAT}")
        return tuple(Owner(**{name: str(owner[name]) for name in Owner.__slots__}) for owner in document["owners"])
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(
            f"the file '{path}', which says whose results '{directory}' holds, cannot be read: {error}. Use the Plait "
            "that wrote it, or delete it together with the results, or choose another path."
        ) from error


def _write_owners(directory: str, owners: tuple[Owner, ...]) -> None:
    document = {"format": _FORMAT, "owners": [{name: getattr(o, name) for name in Owner.__slots__} for o in owners]}
    filesystem, root = locate(directory)
    hidden, final = posixpath.join(root, f".{MARKER}-{uuid.uuid4().hex}"), posixpath.join(root, MARKER)
    filesystem.create_dir(root, recursive=True)
    with filesystem.open_output_stream(hidden) as stream:
        stream.write(json.dumps(document, indent=1).encode())
    reach("mark")
    filesystem.move(hidden, final)


def _data_files(directory: str) -> Iterator[str]:
    """Yield the files that a reader of the directory sees, relative to it, those of partitions too."""
    filesystem, root = locate(directory)
    for info in filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True)):
        relative = posixpath.relpath(info.path, root)
        if info.type == pafs.FileType.File and not any(map(_is_hidden, relative.split("/"))):
            yield relative


def _is_hidden(name: str) -> bool:
    """Tell what Spark tells: partition directories may begin with an underscore."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _empty(directory: str) -> None:
    filesystem, root = locate(directory)
    reach("empty")
    filesystem.delete_dir_contents(root, missing_dir_ok=True)


__all__ = ["MARKER", "Claim", "ClaimedDirectory", "ClaimedPlace", "Existing", "Owner", "file_name", "tag_of"]
