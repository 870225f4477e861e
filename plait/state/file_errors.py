"""What an operating system's error about a file of the checkpoint means, and what the user should do."""

from __future__ import annotations

import errno
from typing import Final

DAMAGED: Final = (
    "The file is damaged. Restore the checkpoint from a backup, or start over with a new checkpoint directory "
    "(state is rebuilt from what the sources still hold)."
)


def meaning(error: OSError) -> str:
    """Say what an error number means for the user."""
    match errno.ENOENT if isinstance(error, FileNotFoundError) else error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "no space left on the device. Free some space, then start again; nothing that was committed is lost."
        case errno.EACCES | errno.EPERM:
            return "permission denied. Let the user that runs Plait read and write the checkpoint directory."
        case errno.EROFS:
            return "the file system is read-only. Choose a checkpoint directory that can be written."
        case errno.ENOENT:
            return (
                "there is no such file. Somebody removed it, or the checkpoint was copied in part. Restore it from a "
                "backup, or start over with a new checkpoint directory."
            )
        case errno.ENOTDIR | errno.EISDIR:
            return "a file is where a directory is expected, or the reverse. Choose another checkpoint directory."
        case errno.EMFILE | errno.ENFILE:
            return "too many open files. Raise the limit (ulimit -n), then start again."
    return (
        f"{error}. Check that the checkpoint's storage is reachable, then start again; "
        "nothing that was committed is lost."
    )


__all__ = ["DAMAGED", "meaning"]
