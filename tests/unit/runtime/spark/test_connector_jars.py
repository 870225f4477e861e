"""Jars of connectors: found, fetched once by whatever way there is, and kept only if they are the right ones."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from plait.errors import PlaitError
from plait.runtime.spark import connector_jars
from plait.runtime.spark.connector_jars import REPOSITORY, install, jar_settings, state_of
from plait.sources.connectors import PACKAGES, Jar, Package, packages_for

JARS = {"one": b"first", "two": b"second"}
PACKAGE = Package(
    name="mine",
    jars=tuple(
        Jar(group="org.mine", artifact=name, version="1.0", digest=hashlib.sha256(content).hexdigest())
        for name, content in JARS.items()
    ),
)


@pytest.fixture(autouse=True)
def one_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_jars, "packages_for", lambda formats: (PACKAGE,) if "mine" in formats else ())


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}


def repository(place: Path, jars: dict[str, bytes] = JARS) -> str:
    for name, content in jars.items():
        folder = place / "org/mine" / name / "1.0"
        folder.mkdir(parents=True)
        (folder / f"{name}-1.0.jar").write_bytes(content)
    return place.as_uri()


def maven(place: Path, body: str) -> None:
    place.mkdir()
    (place / "mvn").write_text(f"#!/bin/sh\n{body}")
    (place / "mvn").chmod(0o755)


def test_a_script_that_names_no_connector_sets_nothing(environment: dict[str, str]) -> None:
    assert jar_settings(["parquet", "noop"], {}, environment) == {}


def test_jars_are_fetched_once_from_the_repository_that_is_named(environment: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    environment[REPOSITORY] = repository(tmp_path / "repository")
    assert not state_of(PACKAGE, environment).is_ready
    paths = [tmp_path / "cache/plait/connectors" / f"{name}-1.0.jar" for name in JARS]
    wanted = {"spark.jars": ",".join(map(str, paths))}
    assert jar_settings(["mine"], {}, environment, said.append) == wanted
    assert [path.read_bytes() for path in paths] == [*JARS.values()]
    environment[REPOSITORY] = "file:/nowhere"
    assert jar_settings(["mine"], {}, environment, said.append) == wanted
    assert len(said) == 1
    assert state_of(PACKAGE, environment).is_ready


def test_jars_of_the_user_come_first_and_a_connector_of_theirs_is_left_to_them(
    environment: dict[str, str], tmp_path: Path
) -> None:
    environment[REPOSITORY] = repository(tmp_path / "repository")
    given = jar_settings(["mine"], {"spark.jars": "/own.jar"}, environment)
    assert given["spark.jars"].startswith("/own.jar,")
    assert jar_settings(["mine"], {"spark.jars": "/x/one-0.9.jar"}, environment) == {}
    assert jar_settings(["mine"], {"spark.jars.packages": "org.mine:one:0.9"}, environment) == {}


def test_what_a_connector_asks_of_spark_is_added_to_what_the_user_says(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment[REPOSITORY] = repository(tmp_path / "repository")
    asking = replace(PACKAGE, settings=(("spark.sql.extensions", "mine.Ext"), ("spark.sql.catalog.c", "mine.Cat")))
    monkeypatch.setattr(connector_jars, "packages_for", lambda formats: (asking,))
    given = jar_settings(["mine"], {}, environment)
    assert (given["spark.sql.extensions"], given["spark.sql.catalog.c"]) == ("mine.Ext", "mine.Cat")
    stated = {"spark.sql.extensions": "own.Ext", "spark.sql.catalog.c": "own.Cat", "spark.jars": "one-1.0.jar"}
    assert jar_settings(["mine"], stated, environment) == {"spark.sql.extensions": "own.Ext,mine.Ext"}
    stated["spark.sql.extensions"] = "mine.Ext,own.Ext"
    assert jar_settings(["mine"], stated, environment) == {}


def test_maven_is_asked_for_these_jars_alone(environment: dict[str, str], tmp_path: Path) -> None:
    copies = "".join(f'printf {content.decode()} > "$to/{name}-1.0.jar"\n' for name, content in JARS.items())
    maven(
        tmp_path / "bin",
        f'for each in "$@"; do to="${{each#-DoutputDirectory=}}"; done\n/bin/cp "$4" "{tmp_path}"\n{copies}',
    )
    assert [path.read_bytes() for path in install(PACKAGE, environment)] == [*JARS.values()]
    project = (tmp_path / "pom.xml").read_text()
    assert project.count("<artifactId>*</artifactId>") == project.count("<dependency>") == 2


def test_what_maven_says_is_told(environment: dict[str, str], tmp_path: Path) -> None:
    maven(tmp_path / "bin", "echo '[ERROR] Could not resolve org.mine:one'; exit 1")
    with pytest.raises(PlaitError, match=r"Maven says: Could not resolve org.mine:one.*plait connectors install mine"):
        install(PACKAGE, environment)


def test_a_mirror_in_mavens_settings_is_the_repository_where_maven_is_missing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    url = repository(tmp_path / "repository")
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors><mirror><mirrorOf>other</mirrorOf><url>no</url>'
        f"</mirror><mirror><mirrorOf>central</mirrorOf><url>{url}/</url></mirror></mirrors></settings>"
    )
    assert len(install(PACKAGE, environment)) == 2


def test_without_any_way_it_is_said_what_there_is_to_do(environment: dict[str, str]) -> None:
    with pytest.raises(PlaitError) as raised:
        install(PACKAGE, environment)
    for advice in (
        "one-1.0.jar, two-1.0.jar",
        "apt-get install maven",
        REPOSITORY,
        "org.mine:one:1.0,org.mine:two:1.0",
    ):
        assert advice in str(raised.value)


def test_a_jar_with_another_content_is_not_kept(environment: dict[str, str], tmp_path: Path) -> None:
    environment[REPOSITORY] = repository(tmp_path / "repository", JARS | {"two": b"tampered"})
    with pytest.raises(PlaitError, match=r"two-1\.0\.jar has SHA-256 .* expected"):
        install(PACKAGE, environment)
    assert [jar.artifact for jar in state_of(PACKAGE, environment).missing] == ["two"]
    assert not [*(tmp_path / "cache/plait/connectors").glob(".part-*")]


def test_what_spark_brings_along_is_not_fetched(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    own = Package(name="mine", jars=(replace(PACKAGE.jars[0], artifact="spark-core_2.13"),))
    monkeypatch.setattr(connector_jars, "packages_for", lambda formats: (own,))
    assert state_of(own, environment).in_spark
    assert jar_settings(["mine"], {}, environment) == {}


def test_every_connector_names_each_of_its_jars_once() -> None:
    assert [package.name for package in packages_for(["parquet", "Kafka", "avro", "kafka"])] == ["kafka", "avro"]
    for package in PACKAGES.values():
        assert len({jar.path for jar in package.jars}) == len(package.jars)
        assert all(len(jar.digest) == 64 for jar in package.jars)
