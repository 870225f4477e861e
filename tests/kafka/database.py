"""A PostgreSQL server for tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.kafka.broker import free_port

_PATIENCE_S: Final = 60
_QUICK: Final = ("fsync=off", "unix_socket_directories=", "listen_addresses=127.0.0.1", "logging_collector=off")


class NoServerError(Exception):
    """There is no server on this machine."""


@dataclass(frozen=True, kw_only=True)
class Database:
    """A database that anybody on this machine may use. `programs`: the folder of the server's programs."""

    port: int
    programs: Path

    @property
    def url(self) -> str:
        """Its address for Java."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """Return what a statement returns."""
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "plait", "-d", "postgres"]
        command = [str(self.programs / "psql"), *address, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        assert done.returncode == 0, done.stderr
        return [tuple(line.split("|")) for line in done.stdout.splitlines()]


@contextmanager
def running_database() -> Iterator[Database]:
    """Provide a database that has no tables. Raises NoServerError."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="plait-database-", ignore_cleanup_errors=True) as place:
        port, folder, whose = free_port(), Path(place), _whose()
        if whose:
            os.chown(folder, pwd.getpwnam(str(whose["user"])).pw_uid, -1)
        made = [programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "plait", "-E", "UTF8", "--no-sync"]
        subprocess.run(made, capture_output=True, timeout=_PATIENCE_S, check=True, cwd=folder, **whose)
        settings = [part for setting in (*_QUICK, f"port={port}") for part in ("-c", setting)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", folder / "data", *settings], stdout=log, stderr=log, cwd=folder, **whose
            )
        try:
            _await(programs, port, process, folder / "log")
            yield Database(port=port, programs=programs)
        finally:
            process.terminate()
            process.wait(timeout=_PATIENCE_S)


def _programs() -> Path:
    found = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or ([Path(found).resolve().parent] if found else [])
    if not places:
        raise NoServerError("there is no PostgreSQL server: apt-get install postgresql")
    return places[-1]


def _whose() -> dict[str, Any]:
    """Return as whom the server runs: it refuses to be root's."""
    return {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}


def _await(programs: Path, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE_S
    ready = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    while process.poll() is None and time.monotonic() < until:
        if subprocess.run(ready, check=False).returncode == 0:
            return
        time.sleep(0.05)
    raise RuntimeError(f"the database did not start: {log.read_text(errors='replace')[-2000:]}")
