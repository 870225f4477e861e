"""The decorator of every kernel, and the one array type kernels see.

A kernel is compiled once for one signature: C-contiguous, aligned, **read-only** input arrays of the documented
dtype. `frozen` brings any array into that shape without a copy where possible (an Arrow buffer already is read-only,
a NumPy result is not; Numba would compile one more variant for each mixture). One signature also is what makes the
on-disk cache safe with concurrent processes: Numba numbers the files of a function's variants without a lock, so that
two processes compiling *different* variants at once can leave an index entry that points to the other's code. With a
single variant whoever writes last writes the same thing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]
Int32s: TypeAlias = NDArray[np.int32]
UInt64s: TypeAlias = NDArray[np.uint64]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile `function` lazily, without the GIL, cached on disk.

    Numba looks for a writable place beside the source and then in the user's cache directory. A worker may have neither
    (an archive on the path, no home directory): then a private directory under the temporary directory serves, and
    without even that the kernel is compiled in every process.
    """
    try:
        return cast(_Function, numba.njit(cache=_may_cache(function), nogil=True)(function))
    except RuntimeError:  # no place to cache
        return cast(_Function, numba.njit(cache=_use_private_cache(), nogil=True)(function))


def helper(function: _Function) -> _Function:
    """Compile `function` into each kernel that calls it. Not cached by itself, so it may have any signatures."""
    return cast(_Function, numba.njit(nogil=True)(function))


def _may_cache(function: _Function) -> bool:
    """Tell whether Numba may look for a place: for a source in an archive it takes the home directory unseen."""
    return Path(function.__code__.co_filename).exists() or os.access(Path.home(), os.W_OK)


def frozen(values: Any, dtype: type[np.generic]) -> NDArray[Any]:
    """Return `values` as a read-only, aligned, C-contiguous array of `dtype`; a view wherever one will do."""
    is_fit = type(values) is np.ndarray and values.dtype == dtype
    if not (is_fit and values.flags.c_contiguous and values.flags.aligned):
        values = np.require(values, dtype=dtype, requirements=("C", "A"))
    if not values.flags.writeable:
        return cast(NDArray[Any], values)
    array: NDArray[Any] = values.view()
    array.flags.writeable = False
    return array


def _use_private_cache() -> bool:
    """Point Numba at a cache only this user can write (it holds pickles); False if there can be none."""
    directory = Path(tempfile.gettempdir()) / f"plait-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
    except OSError:
        return False
    is_private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    if not is_private or directory.is_symlink() or not os.access(directory, os.W_OK):
        return False
    numba.config.CACHE_DIR = str(directory)
    return True
