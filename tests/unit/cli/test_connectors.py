"""`plait connectors`: what is here, and what fetches the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.cli.script import ScriptText
from plait.runtime.spark.connector_jars import REPOSITORY
from plait.sources.connectors import PACKAGES, packages_for
from tests.unit.cli.test_commands import plait


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(REPOSITORY, (tmp_path / "empty").as_uri())
    return tmp_path / "plait" / "connectors"


def test_each_is_listed_with_what_is_missing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.mkdir(parents=True)
    for jar in (*PACKAGES["avro"].jars, *PACKAGES["kafka"].jars[1:]):
        (cache / jar.file).touch()
    assert plait(monkeypatch, "connectors") == 0
    first, second, *others = capsys.readouterr().out.splitlines()
    kafka = PACKAGES["kafka"].jars[0].file
    assert first == (
        f"kafka       not here: {kafka} will be fetched when a script names it, or by: plait connectors install kafka"
    )
    assert second == f"avro        ready: {PACKAGES['avro'].jars[0].file}"
    assert [line.split(":")[0] for line in others] == ["delta       not here", "postgresql  not here"]


def test_what_cannot_be_fetched_is_said_and_what_is_here_is_not_fetched(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, "connectors", "install", "avro") == 1
    assert "connector 'avro': its jars cannot be downloaded" in capsys.readouterr().err
    (cache / PACKAGES["avro"].jars[0].file).touch()
    assert plait(monkeypatch, "connectors", "install", "avro") == 0
    assert plait(monkeypatch, "connectors", "install", "avr") == 2
    assert "did you mean 'avro'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("CREATE STREAM s USING KAFKA TIMESTAMP BY timestamp;", ["kafka"]),
        ('CREATE STREAM s USING text TIMESTAMP BY t FORMAT avro (\'{"type": "record", "fields": []}\');', ["avro"]),
        ("CREATE TABLE t USING avro OPTIONS (path 'in');", ["avro"]),
        ("CREATE STREAM kafka USING rate TIMESTAMP BY timestamp; CREATE QUERY q INTO noop AS SELECT 1 FROM kafka;", []),
    ],
)
def test_a_script_wants_the_connectors_that_it_names(text: str, wanted: list[str]) -> None:
    formats = ScriptText(file=Path("s.sql"), text=text).formats()
    assert [package.name for package in packages_for(formats)] == wanted
