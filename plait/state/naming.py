"""Names of the files under ``stores/``.

``stores/<store>/<partition>/<name>.arrow`` is a bucket, ``<name>.<digest of its keys>.index`` beside it one of its
indexes. Everything before the first dot is the bucket's, so that its indexes are found from its name and the reverse.
"""

from __future__ import annotations

import posixpath
import re

import xxhash

STORES = "stores"
GROUPS = "groups"
"""Where joined rows wait for windows of event time to be over, in a folder for each query."""
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_-]{0,99}")
_UNFIT = re.compile(r"[^a-z0-9_-]+")


def encoded(text: str) -> str:
    """Return `text` as a file name: itself where it is fit for any file system, else a readable part and a digest.

    Upper case is unfit too: some file systems do not tell it from lower case.
    """
    if _PLAIN.fullmatch(text):
        return text
    return f"{_UNFIT.sub('-', text.lower())[:60]}~{xxhash.xxh3_64(text.encode()).hexdigest()}"


def bucket_path(store: str, partition: int, name: str) -> str:
    """Return a bucket's path in the storage."""
    return f"{STORES}/{encoded(store)}/{partition}/{encoded(name)}.arrow"


def index_path(bucket: str, keys: tuple[str, ...]) -> str:
    """Return the path of the index by `keys` of the bucket at path `bucket`."""
    digest = xxhash.xxh3_64("\n".join(keys).encode()).hexdigest()
    return f"{stem(bucket)}.{digest}.index"


def stem(path: str) -> str:
    """Return what the paths of a bucket and of its indexes have in common."""
    folder, base = posixpath.split(path)
    return posixpath.join(folder, base.split(".", 1)[0])
