"""The jars of a broker, and of the connectors that speak to it, which Maven fetches once for all tests.

python -m tests.kafka.jars    # fetch them now, before tests run side by side
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from plait.errors import PlaitError
from plait.runtime.spark.archive import cache_directory
from plait.runtime.spark.connector_jars import install
from plait.sources.connectors import PACKAGES

VERSION: Final = "4.1.1"
_PATIENCE_S: Final = 300
_PROJECT: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>plait</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{VERSION}</version></dependency></dependencies></project>"""


class NoJarsError(Exception):
    """Jars that tests need cannot be had on this machine."""


def fetched_jars() -> Path:
    """Return the folder of the broker's jars. It and the connectors are fetched if they are not there, by one process
    at a time. Raises NoJarsError.
    """
    cache = (cache_directory(os.environ) or Path(tempfile.gettempdir())) / "plait"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"test-broker-{VERSION}"
    with (cache / "test-broker.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder)
        try:
            for format_ in ("kafka", "avro", "delta", "postgresql"):
                install(PACKAGES[format_])
        except PlaitError as error:
            raise NoJarsError(str(error)) from error
    return folder


def _fetch(folder: Path) -> None:
    """Let Maven make the folder, whole or not at all."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NoJarsError("Maven is missing, which fetches the broker's jars: apt-get install maven")
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        project, jars = Path(place) / "pom.xml", Path(place) / "jars"
        project.write_text(_PROJECT)
        wanted = [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        command = [maven, "-B", "-q", "-f", str(project), "dependency:copy-dependencies", *wanted]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise NoJarsError(f"Maven has not fetched the broker's jars in {_PATIENCE_S} seconds") from error
        if done.returncode:
            raise NoJarsError(f"Maven cannot fetch the broker's jars: {(done.stdout + done.stderr)[:500]}")
        jars.rename(folder)


if __name__ == "__main__":
    try:
        fetched_jars()
    except NoJarsError as reason:
        sys.exit(str(reason))
