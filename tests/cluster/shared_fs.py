"""A file system that no process can open as a path: ``plaitfs://shared/``, to Hadoop and to fsspec alike.

Behind it is a directory, which every process learns from its own environment: two processes that are told different
directories do not share it.
"""

from __future__ import annotations

from pathlib import Path

VARIABLE = "PLAIT_TEST_SHARED"
ADDRESS = "plaitfs://shared"

_MODULE = f'''
import os

from fsspec.implementations.local import LocalFileSystem


class SharedFileSystem(LocalFileSystem):
    protocol = "plaitfs"

    @classmethod
    def _strip_protocol(cls, path):
        if str(path).startswith("{ADDRESS}"):
            path = os.environ["{VARIABLE}"] + str(path)[len("{ADDRESS}"):]
        return super()._strip_protocol(path)
'''


def install(directory: Path) -> str:
    """Write the file system as a package that any Python with `directory` on its path finds; return the directory."""
    directory.mkdir()
    (directory / "plait_shared_fs.py").write_text(_MODULE)
    described = directory / "plait_shared_fs-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plait-shared-fs\nVersion: 1\n")
    (described / "entry_points.txt").write_text("[fsspec.specs]\nplaitfs = plait_shared_fs:SharedFileSystem\n")
    return str(directory)


def settings(root: Path) -> tuple[str, ...]:
    """Return the options of ``plait run`` that tell Hadoop where the file system's files are."""
    made = {f"viewfs.mounttable.shared.link./{name}": f"file://{root}/{name}" for name in ("checkpoint", "out")}
    made["plaitfs.impl"] = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    return tuple(part for name, value in made.items() for part in ("--conf", f"spark.hadoop.fs.{name}={value}"))
