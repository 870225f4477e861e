"""A class-data archive for the driver's JVM: what Spark loads at every start, parsed and verified once.

Loading classes is more than a quarter of all the processor time of a short run. The JVM can map them from a file
instead. It writes that file itself, when it ends, if it was started with the options for that, and checks by itself at
each start that this very JVM wrote the file for these very jars; if not, it starts without.

Nothing here is needed for a run, so whatever is wrong with the cache (no home directory, a full disk, somebody else's
files) leads to a start without an archive and to no message. These rules keep it harmless:

- An archive is written under a name no start reads, and renamed once it is whole and on disk. The JVM writes the header
  last, so that its first bytes tell. It outlives the process that started it, so the next start is who renames.
- One process at a time makes one: it holds a claim, which counts for a few minutes.
- The JVM trusts what it has written to be all there, and crashes if it is not. So the name tells size and both ends of
  the file (not its digest: to read it all takes a tenth of a second), and one that differs is removed.
- The name also tells Spark's version, the JVM and the jars (names, sizes, times), so a new one of any of them has an
  archive of its own. Those that nobody has used for a month are removed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

_MAGIC = frozenset({bytes.fromhex(f"f00baba{digit}")[::order] for digit in "28" for order in (1, -1)})
"""How an archive begins, complete or on top of the JVM's own, in either byte order."""

_SILENT = "-Xshare:auto -Xlog:cds*=off -Xlog:class+path*=off"
_END_BYTES = 1 << 16
_CLAIM_S = 15 * 60
_UNUSED_S = 30 * 24 * 3600
_LEFTOVER_S = 24 * 3600
_OTHER_CLASSES = ("SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_PREPEND_CLASSES")
"""Variables that put directories on the class path, with which the JVM cannot make or use an archive."""

_UNSAFE = frozenset("\"'\\\n")
"""What Spark would take apart in an option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The archive for one Spark and one JVM in a cache directory, whether it is there yet or not."""

    directory: Path
    key: str

    def path(self) -> Path | None:
        """Return where the archive is, None if there is none that is whole and nobody else's. Raises OSError."""
        if not self.directory.is_dir() or not _is_ours(self.directory):
            return None
        for file in sorted(self.directory.glob(f"{self.key}.*.jsa")):
            if file.name == self._name(file):
                return file
            file.unlink()
        return None

    def _name(self, file: Path) -> str:
        """Return the name of an archive with the content of `file`."""
        with file.open("rb") as written:
            size = written.seek(0, os.SEEK_END)
            written.seek(max(size - _END_BYTES, 0))
            ends = written.read()
            written.seek(0)
            ends += written.read(_END_BYTES)
        return f"{self.key}.{size}-{hashlib.sha256(ends).hexdigest()[:16]}.jsa"

    @property
    def _claim(self) -> Path:
        return self.directory / f"{self.key}.claim"

    def options(self, *, make: bool) -> str:
        """Return the JVM's options to use the archive; if there is none, those to make it (`make`) or nothing."""
        try:
            self._adopt()
            path = self.path()
            if path is not None:
                os.utime(path)
                return f'{_SILENT} "-XX:SharedArchiveFile={path}"'
            return self._making() if make else ""
        except OSError:
            return ""

    def discard(self) -> None:
        """Delete an archive with which the JVM does not start."""
        with suppress(OSError):
            for file in self.directory.glob(f"{self.key}.*.jsa"):
                file.unlink()

    def wait(self, seconds: float) -> bool:
        """Wait until an archive that is being made is ready; tell whether it is."""
        until = time.monotonic() + seconds
        while not self.options(make=False) and time.monotonic() < until:
            time.sleep(0.1)
        return bool(self.options(make=False))

    def _making(self) -> str:
        """Return the options to make the archive, unless somebody else is at it."""
        self.directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        if not _is_ours(self.directory):
            return ""
        self._remove_old()
        try:
            os.close(os.open(self._claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return ""
        part = self.directory / f"{self.key}.{uuid.uuid4().hex[:8]}.part"
        return f'{_SILENT} "-XX:ArchiveClassesAtExit={part}"'

    def _adopt(self) -> None:
        """Give an archive that has been written its name. Raises OSError."""
        if not self.directory.is_dir() or not _is_ours(self.directory):
            return
        for part in self.directory.glob(f"{self.key}.*.part"):
            with part.open("rb") as written:
                if written.read(4) not in _MAGIC:
                    continue
                os.fsync(written.fileno())
            part.replace(self.directory / self._name(part))
            self._claim.unlink(missing_ok=True)

    def _remove_old(self) -> None:
        """Remove claims that have run out, pieces of archives, and archives nobody uses."""
        for pattern, seconds in (("*.claim", _CLAIM_S), ("*.part", _LEFTOVER_S), ("*.jsa", _UNUSED_S)):
            for path in self.directory.glob(pattern):
                if time.time() - path.stat().st_mtime > seconds:
                    path.unlink(missing_ok=True)


def launcher_classes(home: Path | None = None) -> tuple[str, ...]:
    """Return the option with which the JVM that works out Spark's command line finds its classes at once; none if there
    is not one jar of them, or Spark's script would take its path apart.
    """
    jars = [*((home or Path(_find_spark_home())) / "jars").glob("spark-launcher_*.jar")]
    if len(jars) != 1 or any(sign.isspace() or sign in _UNSAFE or sign in "*?[:" for sign in str(jars[0])):
        return ()
    return (f"-Xbootclasspath/a:{jars[0]}",)


def find_archive(environment: Mapping[str, str] = os.environ) -> Archive | None:
    """Return the archive for the Spark and the Java that a session started now would get; None if it can have none."""
    home = Path(_find_spark_home())
    jars, java, cache = home / "jars", _java_home(environment), cache_directory(environment)
    if java is None or cache is None or (home / "conf").exists() or any(map(environment.get, _OTHER_CLASSES)):
        return None
    directory = cache / "plait" / "spark-classes"
    if _UNSAFE & set(str(directory)):
        return None
    try:
        told = "\n".join((str(jars), *_described(jars.iterdir()), str(java), *_described([java / "lib" / "modules"])))
    except OSError:
        return None
    digest = hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()[:16]
    return Archive(directory=directory, key=f"spark-{pyspark.__version__}-{digest}")


def _described(paths: Iterator[Path] | list[Path]) -> list[str]:
    stats = [(path.name, path.stat()) for path in sorted(paths)]
    return [f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in stats]


def _java_home(environment: Mapping[str, str]) -> Path | None:
    """Return where Java is installed that Spark's scripts would start."""
    home = environment.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    return None if program is None else Path(os.path.realpath(program)).parent.parent


def cache_directory(environment: Mapping[str, str]) -> Path | None:
    """Return the user's cache directory by the rules of the XDG base directories."""
    stated = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(stated):
        return Path(stated)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        return None


def _is_ours(directory: Path) -> bool:
    """Tell whether nobody else can put code there: an archive is code."""
    status = directory.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


__all__ = ["Archive", "cache_directory", "find_archive"]
