"""Where a benchmark ran: machine, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measure import fields

_PROC = Path("/proc")
_PACKAGES = ("plait", "pyspark", "pyarrow", "numpy", "numba", "duckdb")


def surroundings() -> dict[str, Any]:
    """Return the machine, the versions and the commit of this run, for its report."""
    return {
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": _total_memory(),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
            "java": _java(),
        },
        "commit": commit(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str | None:
    try:
        lines = (_PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _total_memory() -> int | None:
    try:
        return fields((_PROC / "meminfo").read_text())["MemTotal"]
    except (OSError, KeyError):
        return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    return _first_line([java, "-version"])


def commit() -> str | None:
    """Return the commit of the source this runs from, marked if files differ from it; None outside a checkout."""
    here = Path(__file__).resolve().parent
    found = _first_line(["git", "-C", str(here), "rev-parse", "HEAD"])
    if found is None:
        return None
    changed = _first_line(["git", "-C", str(here), "status", "--porcelain", "--untracked-files=no"])
    return f"{found}, with changes" if changed else found


def _first_line(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0] if lines else None
