"""Whether every process that works on a checkpoint sees the same files.

Before a run on several processes begins, its driver leaves a file of a new name, the **mark**, in the checkpoint. A
process that does not find it there looks at another directory of the same name (the checkpoint is not shared) or works
for a run that has been replaced by another. Either way it must touch nothing: what it writes would be named by a
manifest and missing. A new name each time, because network file systems remember for a while what a name meant.
"""

from __future__ import annotations

import socket
import uuid
from dataclasses import replace

from plait.errors import CheckpointError, PlaitError
from plait.state.place import STATE
from plait.state.storage import Storage

FOLDER = "marks"
_seen: set[tuple[str, str]] = set()


def leave_mark(storage: Storage, version: str) -> Storage:
    """Leave a new mark of this version of Plait in the place of earlier ones; return the storage with it."""
    for old in storage.list(FOLDER):
        storage.delete(old.path)
    mark = uuid.uuid4().hex
    storage.write_file(f"{FOLDER}/{mark}", version.encode())
    return replace(storage, mark=mark)


def sees_mark(storage: Storage, version: str) -> bool:
    """Tell whether this process sees the storage's mark; a storage without one is taken on trust.

    Raises PlaitError if the driver that left it is of another version: tasks and driver exchange plans and counts.
    """
    if storage.mark is None or (storage.uri, storage.mark) in _seen:
        return True
    path = f"{FOLDER}/{storage.mark}"
    if not storage.exists(path):
        return False
    left_by = storage.read_bytes(path).decode()
    if left_by != version:
        raise PlaitError(
            f"the driver runs Plait {left_by}, the worker on {socket.gethostname()} has Plait {version}: install "
            "the same version in the executors' Python (docs/deploy.md)"
        )
    _seen.add((storage.uri, storage.mark))
    return True


def require_mark(storage: Storage, version: str) -> None:
    """Raise CheckpointError unless this process sees the storage's mark."""
    if not sees_mark(storage, version):
        raise not_shared(storage, (socket.gethostname(),))


def not_shared(storage: Storage, hosts: tuple[str, ...]) -> CheckpointError:
    """Return the error for a checkpoint that workers on these machines do not see."""
    place = f"worker{'s' if len(hosts) > 1 else ''} on {', '.join(hosts)}"
    checkpoint = storage.uri.removesuffix(f"/{STATE}")
    return CheckpointError(
        f"checkpoint {checkpoint} is not shared: the {place} did not find in it what the driver had just written. Name "
        "a checkpoint (--checkpoint) that driver and workers reach under one path or URI: a network file system, "
        "hdfs://, s3://; or run with --master 'local[*]'. If it is shared, another run has been started on it: stop "
        "one of them."
    )
