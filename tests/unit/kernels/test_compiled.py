"""Kernels are compiled in real processes of their own, from a copy of the package that can be tampered with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plait.kernels
from plait.kernels.compiled import frozen

HASH = """
import numpy as np
from plait.kernels import hashing
assert hashing.partition_of(np.arange(4), 3).tolist() == [0, 1, 0, 0]
print(getattr(hashing._partition._cache, "cache_path", None))
"""

WARM = """
from plait.kernels.warm import warm
warm()
"""

LOADED = """
from plait.kernels.warm import warm
warm()
from plait.kernels import bands, hashing, matching, ordering, sketch
kernels = [value for module in (bands, hashing, matching, ordering, sketch) for value in vars(module).values()
           if hasattr(value, "_cache") and type(value._cache).__name__ == "FunctionCache"]
assert kernels
assert all(len(kernel.signatures) == 1 for kernel in kernels), [(kernel, kernel.signatures) for kernel in kernels]
print(sum(kernel.stats.cache_misses[s] for kernel in kernels for s in kernel.stats.cache_misses))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the kernels alone, never compiled."""
    source = Path(plait.kernels.__file__).parent
    root = tmp_path / "package"
    shutil.copytree(source, root / "plait" / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "plait" / "__init__.py").touch()
    (tmp_path / "home").mkdir()
    (tmp_path / "temporary").mkdir()
    return root


def start(package: Path, code: str, *, home: Path | None = None) -> subprocess.Popen[str]:
    here = package.parent
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(package),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home or here / "home"),
        "TMPDIR": str(here / "temporary"),
    }
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=here,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out.strip()


def test_the_cache_lies_beside_the_source(package: Path) -> None:
    assert output_of(start(package, HASH)) == str(package / "plait" / "kernels" / "__pycache__")


def test_a_package_that_cannot_be_written_is_cached_in_the_users_directory(package: Path) -> None:
    (package / "plait" / "kernels" / "__pycache__").touch()  # a file in the way; a mode would not stop root
    assert output_of(start(package, HASH)).startswith(str(package.parent / "home"))


def test_without_a_home_the_cache_is_private_and_temporary(package: Path) -> None:
    (package / "plait" / "kernels" / "__pycache__").touch()
    place = output_of(start(package, HASH, home=Path(os.devnull, "nowhere")))
    assert place.startswith(str(package.parent / "temporary"))
    (directory,) = (package.parent / "temporary").glob("plait-kernels-*")
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_cache_others_can_write_is_not_trusted(package: Path) -> None:
    (package / "plait" / "kernels" / "__pycache__").touch()
    directory = package.parent / "temporary" / f"plait-kernels-{os.getuid()}"
    directory.mkdir()
    directory.chmod(0o777)
    assert output_of(start(package, HASH, home=Path(os.devnull, "nowhere"))) == "None"


def test_kernels_in_an_archive_work_without_a_home(package: Path) -> None:
    archive = shutil.make_archive(str(package.parent / "plait"), "zip", package)
    assert output_of(start(Path(archive), HASH, home=Path(os.devnull, "nowhere"))) == "None"


def test_processes_that_compile_at_once_leave_a_sound_cache(package: Path) -> None:
    for process in [start(package, WARM) for _ in range(2)]:
        output_of(process)
    assert output_of(start(package, LOADED)) == "0"


def test_arrays_are_frozen_without_a_copy() -> None:
    values = np.arange(4)
    view = frozen(values, np.int64)
    assert np.shares_memory(view, values)
    assert not view.flags.writeable
    assert values.flags.writeable


@pytest.mark.parametrize("values", [np.arange(8)[::2], np.arange(4, dtype=np.int32), [0, 1, 2, 3]])
def test_anything_else_is_brought_into_shape(values: object) -> None:
    assert frozen(values, np.int64).flags.c_contiguous
    assert frozen(values, np.int64).dtype == np.int64
