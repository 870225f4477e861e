"""File systems by address: a local path, or any URI that ``pyarrow.fs`` or fsspec understands."""

from __future__ import annotations

import os
import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.fs as pafs


@lru_cache(maxsize=64)
def filesystem_of(uri: str) -> tuple[pafs.FileSystem, str]:
    """Connect to a remote file system, once per process; return it with the path on it. ``s3a:``, as Hadoop calls S3,
    is ``s3:``. Raises ValueError for an address that neither Arrow nor fsspec knows.
    """
    try:
        filesystem, root = pafs.FileSystem.from_uri(re.sub("^s3[an]:", "s3:", uri))
        return filesystem, root
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as arrow_error:
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-not-found, import-untyped, unused-ignore]

            remote, root = url_to_fs(uri)
        except (ImportError, ValueError) as error:
            raise ValueError(f"neither Arrow ({arrow_error}) nor fsspec ({error}) knows such addresses") from error
        return pafs.PyFileSystem(pafs.FSSpecHandler(remote)), root


def for_spark(path: str) -> str:
    """Return a path or URI as Spark takes it: a local path with its scheme, without which Spark would look in the
    default file system of the cluster, which may be another one.
    """
    return f"file://{path}" if path.startswith("/") else path


def absolute_path(path: str) -> str:
    """Return a local path made absolute, because tasks run in other directories; URIs as they are."""
    return path if "://" in path or path.startswith("file:") else os.path.abspath(path)
