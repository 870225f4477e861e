"""The jars of connectors on this machine: in Spark's own folder, or in the user's cache, downloaded there once.

Where Maven's client is installed it is asked, since it knows the repository this machine is to use. Otherwise they are
downloaded from the repository that Maven's settings or ``PLAIT_MAVEN_REPOSITORY`` name. A file is in the cache only
when it is whole and its digest is right: it is written beside it and renamed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from pyspark.find_spark_home import _find_spark_home

from plait.errors import PlaitError
from plait.runtime.spark.archive import cache_directory
from plait.sources.connectors import Jar, Package, packages_for

REPOSITORY: Final = "PLAIT_MAVEN_REPOSITORY"
"""The variable that names a repository to download from."""

_CLASS_PATH: Final = "spark.driver.extraClassPath"
_EXTENSIONS: Final = "spark.sql.extensions"
_PATIENCE_S: Final = 300
_ALL_REPOSITORIES: Final = ("*", "external:*", "central")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorState:
    """Whether a connector is there: `in_spark`, or which jars are still `missing` in the cache."""

    package: Package
    in_spark: bool
    missing: tuple[Jar, ...]

    @property
    def is_ready(self) -> bool:
        """Whether a script that names it needs nothing from elsewhere."""
        return self.in_spark or not self.missing


def state_of(package: Package, environment: Mapping[str, str] = os.environ) -> ConnectorState:
    """Return what there is of a connector on this machine."""
    own = Path(_find_spark_home()) / "jars"
    in_spark = any(own.glob(f"{package.jars[0].artifact}-[0-9]*.jar"))
    cache = _cache(environment)
    missing = tuple(jar for jar in package.jars if cache is None or not (cache / jar.file).is_file())
    return ConnectorState(package=package, in_spark=in_spark, missing=missing)


def jar_settings(
    formats: Iterable[str],
    stated: Mapping[str, str],
    environment: Mapping[str, str] = os.environ,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """Return the settings of Spark with which it has the connectors of these formats; nothing for those that it, or the
    user's settings, have already. What is missing is downloaded, which `say` is told. Raises PlaitError.
    """
    named = ",".join(stated.get(name, "") for name in ("spark.jars", "spark.jars.packages", _CLASS_PATH))
    wanted = [package for package in packages_for(formats) if package.jars[0].artifact not in named]
    states = [state for state in (state_of(package, environment) for package in wanted) if not state.in_spark]
    settings = _settings(packages_for(formats), stated)
    if not states:
        return settings
    jars = [path for state in states for path in install(state.package, environment, say)]
    before = [stated["spark.jars"]] if stated.get("spark.jars") else []
    return {**settings, "spark.jars": ",".join([*before, *map(str, jars)])}


def _settings(packages: Iterable[Package], stated: Mapping[str, str]) -> dict[str, str]:
    """Return what connectors ask for beside what is stated: one more extension, or what is not stated at all."""
    settings = dict[str, str]()
    for name, value in (setting for package in packages for setting in package.settings):
        known = stated.get(name, "").split(",")
        if name == _EXTENSIONS and value not in known:
            settings[name] = ",".join(filter(None, [*known, value]))
        elif name not in stated:
            settings[name] = value
    return settings


def install(
    package: Package, environment: Mapping[str, str] = os.environ, say: Callable[[str], None] = lambda text: None
) -> tuple[Path, ...]:
    """Return where the jars of a connector are, downloaded if they have to be. Raises PlaitError with what to do."""
    cache = _cache(environment)
    if cache is None:
        raise PlaitError(
            f"connector '{package.name}': there is no home directory to keep its jars in; set XDG_CACHE_HOME to a "
            "directory"
        )
    missing = state_of(package, environment).missing
    if missing:
        say(f"connector '{package.name}' is downloaded to {cache}, once")
        _download(package.name, missing, cache, environment)
    return tuple(cache / jar.file for jar in package.jars)


def _cache(environment: Mapping[str, str]) -> Path | None:
    cache = cache_directory(environment)
    return None if cache is None else cache / "plait" / "connectors"


def _download(connector: str, jars: Sequence[Jar], cache: Path, environment: Mapping[str, str]) -> None:
    repository = _repository(environment)
    maven = None if environment.get(REPOSITORY) else shutil.which("mvn", path=environment.get("PATH"))
    if maven is None and repository is None:
        files = ", ".join(jar.file for jar in jars)
        raise PlaitError(
            f"connector '{connector}': its jars are not on this machine ({files}), and there is neither Maven to fetch "
            f"them (apt-get install maven) nor a repository in {REPOSITORY} or in Maven's settings. Install it, or put "
            f"the files into {cache}, or set spark.jars.packages to "
            f"'{','.join(jar.coordinates for jar in jars)}' where Spark may download them itself."
        )
    try:
        cache.mkdir(parents=True, mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=cache) as place:
            target = Path(place)
            if maven is not None:
                _ask_maven(maven, jars, target)
            else:
                for jar in jars:
                    _fetch(f"{(repository or '').rstrip('/')}/{jar.path}", target / jar.file)
            for jar in jars:
                _keep(jar, target / jar.file, cache)
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise PlaitError(
            f"connector '{connector}': its jars cannot be downloaded to {cache}: {reason}. Run `plait connectors "
            f"install {connector}` where the repository can be reached, or put the files there."
        ) from error


def _fetch(url: str, path: Path) -> None:
    if not url.startswith(("https://", "http://", "file:")):
        raise OSError(f"'{url}' is no address of a repository")
    with urllib.request.urlopen(url, timeout=_PATIENCE_S) as answer, path.open("wb") as file:
        shutil.copyfileobj(answer, file)


def _ask_maven(maven: str, jars: Sequence[Jar], target: Path) -> None:
    """Let Maven copy these jars, and none that they ask for. Raises OSError with what it says."""
    project = target / "pom.xml"
    project.write_text(_project(jars), encoding="utf-8")
    command = [maven, "-B", "-q", "-f", str(project), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"Maven has not answered for {_PATIENCE_S} seconds") from error
    if done.returncode:
        told = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("[ERROR]")]
        raise OSError(f"Maven says: {told[0].removeprefix('[ERROR]').strip() if told else 'it failed'}")


def _project(jars: Sequence[Jar]) -> str:
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    wanted = "".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version>{alone}</dependency>"
        for jar in jars
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>plait</groupId>'
        "<artifactId>connectors</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{wanted}</dependencies></project>"
    )


def _keep(jar: Jar, path: Path, cache: Path) -> None:
    """Move a file into the cache if it is what it should be. Raises OSError."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != jar.digest:
        raise OSError(f"{jar.file} has SHA-256 {found}, expected {jar.digest}")
    path.replace(cache / jar.file)


def _repository(environment: Mapping[str, str]) -> str | None:
    """Return the repository this machine is told to use: by the variable, or as a mirror in Maven's settings."""
    if environment.get(REPOSITORY):
        return environment[REPOSITORY]
    home = environment.get("HOME")
    settings = Path(home) / ".m2" / "settings.xml" if home else None
    if settings is None or not settings.is_file():
        return None
    try:
        elements = list(ElementTree.parse(settings).iter())
    except (OSError, ElementTree.ParseError):
        return None
    for mirror in (element for element in elements if _tag(element) == "mirror"):
        told = {_tag(child): (child.text or "").strip() for child in mirror}
        if told.get("mirrorOf", "").split(",")[0] in _ALL_REPOSITORIES and told.get("url"):
            return told["url"]
    return None


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


__all__ = ["REPOSITORY", "ConnectorState", "install", "jar_settings", "state_of"]
