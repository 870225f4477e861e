"""Let go of mapped pages that were read.

A page of a mapped file stays in a process's page table once it was touched, and the kernel maps its neighbours along
with it: a few thousand look-ups spread over a large bucket make most of the bucket part of the process. The file's
pages are the kernel's to keep or drop; here only the process's claim on them is given up.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

_DONT_NEED = 4
"""``MADV_DONTNEED`` on Linux. Elsewhere it has other numbers and meanings, so nothing is done there."""


@cache
def _madvise() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


def release(buffers: Iterable[tuple[int, int]], limit: int) -> bool:
    """Unmap for now the pages of these (address, size) pieces of **one read-only file mapping** of `limit` bytes.

    They stay readable: the next touch maps them again. Pieces that do not fit into one mapping of that size are left
    alone, because unmapping memory that no file backs would clear it. Tells whether the kernel was asked.
    """
    pieces = [(address, address + size) for address, size in buffers if size]
    advise = _madvise()
    if advise is None or not pieces:
        return False
    start, end = min(piece[0] for piece in pieces), max(piece[1] for piece in pieces)
    if end - start > limit:
        return False
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = end // mmap.PAGESIZE * mmap.PAGESIZE - first
    return length > 0 and advise(first, length, _DONT_NEED) == 0
