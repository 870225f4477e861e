"""A class-data archive saves work when it is there and sound; whatever else is there, a start goes on without it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plait.runtime.spark import archive as archives
from plait.runtime.spark.archive import Archive, find_archive, launcher_classes

WHOLE = bytes.fromhex("a8ab0bf0") + bytes(60)
PIECE = bytes(64)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    found = find_archive(environment(tmp_path))
    assert found is not None
    return found


def environment(cache: Path) -> dict[str, str]:
    told = ("PATH", "JAVA_HOME", "HOME")
    return {"XDG_CACHE_HOME": str(cache)} | {name: os.environ[name] for name in told if name in os.environ}


def part_of(options: str) -> Path:
    """Return where the JVM is told to write the archive."""
    return Path(next(word for word in shlex.split(options) if "ArchiveClassesAtExit" in word).partition("=")[2])


def made(archive: Archive, body: bytes = b"") -> Path:
    """Leave what looks like an archive in its place, and return where."""
    part_of(archive.options(make=True)).write_bytes(WHOLE + body)
    assert archive.options(make=False)
    path = archive.path()
    assert path is not None
    return path


def run_java(archive: Archive, options: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Have Java say what it is."""
    home = archives._java_home(os.environ)
    command = [f"{home}/bin/java", *shlex.split(options), *more, "-version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_nothing_is_made_unless_asked(archive: Archive, tmp_path: Path) -> None:
    assert archive.options(make=False) == ""
    assert list(tmp_path.iterdir()) == []


def test_what_the_jvm_wrote_serves_the_next_start_and_no_message_is_printed(archive: Archive) -> None:
    making = run_java(archive, archive.options(make=True))
    assert archive.path() is None
    using = archive.options(make=False)
    assert f"-XX:SharedArchiveFile={archive.path()}" in shlex.split(using)
    used = run_java(archive, using)
    plain = run_java(archive, "")
    assert plain.returncode == making.returncode == used.returncode == 0
    assert (making.stdout, making.stderr) == (used.stdout, used.stderr) == (plain.stdout, plain.stderr)
    assert "file (top)" in run_java(archive, using, "-Xlog:class+load").stdout


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda whole: b"", id="empty"),
        pytest.param(lambda whole: whole[:4096], id="cut off after its header"),
        pytest.param(lambda whole: whole[: len(whole) // 2], id="cut off in the middle"),
        pytest.param(lambda whole: bytes(len(whole)), id="other bytes"),
        pytest.param(lambda whole: whole[:4] + bytes(4092) + whole[4096:], id="no header"),
    ],
)
def test_a_damaged_archive_is_not_used_and_makes_room_for_another(
    archive: Archive, damage: Callable[[bytes], bytes]
) -> None:
    path = made(archive, os.urandom(1 << 20))
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert archive.options(make=False) == ""
    assert not path.exists()
    assert "ArchiveClassesAtExit" in archive.options(make=True)


def test_the_jvm_leaves_out_in_silence_what_another_jvm_wrote(archive: Archive) -> None:
    part = part_of(archive.options(make=True))
    run_java(archive, f"-XX:ArchiveClassesAtExit={part} -Xlog:cds*=off")
    here = run_java(archive, "", "-Xinternalversion").stdout.split(" for ")[0].encode()
    content = part.read_bytes()
    part.unlink()
    part.write_bytes(content.replace(here, here[::-1]))
    assert here in content
    leaves_out(archive, archive.options(make=False))


def test_an_archive_gone_since_it_was_found_is_left_out_in_silence(archive: Archive) -> None:
    path = made(archive)
    options = archive.options(make=False)
    path.unlink()
    leaves_out(archive, options)


def leaves_out(archive: Archive, options: str) -> None:
    """Check that Java runs with the archive in these options as it does without."""
    assert "SharedArchiveFile" in options
    broken, plain = run_java(archive, options), run_java(archive, "")
    assert (broken.returncode, broken.stdout) == (0, plain.stdout)
    assert broken.stderr.replace(", sharing", "") == plain.stderr.replace(", sharing", "")


def test_half_an_archive_is_not_taken(archive: Archive) -> None:
    part = part_of(archive.options(make=True))
    part.write_bytes(PIECE)
    assert archive.options(make=False) == ""
    part.write_bytes(WHOLE)
    assert "SharedArchiveFile" in archive.options(make=False)


def test_of_processes_that_start_at_once_one_makes_the_archive(archive: Archive) -> None:
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: archive.options(make=True), range(32)))
    assert sum("ArchiveClassesAtExit" in options for options in told) == 1
    assert sum(options == "" for options in told) == 31


def test_a_claim_runs_out_and_two_makers_then_do_not_disturb_each_other(archive: Archive) -> None:
    first = part_of(archive.options(make=True))
    late = time.time() - 3600
    os.utime(archive._claim, (late, late))
    second = part_of(archive.options(make=True))
    assert first != second
    for part in (first, second):
        part.write_bytes(WHOLE)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: archive.options(make=True), range(16)))
    assert all("ArchiveClassesAtExit" not in options for options in told)
    assert list(archive.directory.iterdir()) == [archive.path()]


@pytest.mark.parametrize("change", ["size", "time", "name", "java"])
def test_other_jars_or_another_java_have_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    home, java = tmp_path / "spark", tmp_path / "java"
    for path in (home / "jars" / "spark-core.jar", java / "bin" / "java", java / "lib" / "modules"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"as it was")
    monkeypatch.setenv("SPARK_HOME", str(home))
    told = {**environment(tmp_path / "cache"), "JAVA_HOME": str(java)}
    before, jar = find_archive(told), home / "jars" / "spark-core.jar"
    assert before == find_archive(told)
    if change == "size":
        jar.write_bytes(b"as it is now")
    elif change == "time":
        os.utime(jar, (1, 1))
    elif change == "name":
        jar.rename(jar.with_name("spark-core-2.jar"))
    else:
        (java / "lib" / "modules").write_bytes(b"a newer one")
    after = find_archive(told)
    assert before is not None
    assert after is not None
    assert before.key != after.key


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_DIST_CLASSPATH"])
def test_directories_on_the_class_path_leave_no_room_for_an_archive(tmp_path: Path, name: str) -> None:
    assert find_archive({**environment(tmp_path), name: "/etc/spark"}) is None


def test_without_java_there_is_no_archive(tmp_path: Path) -> None:
    assert find_archive({"XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path)}) is None


def test_a_name_that_spark_would_take_apart_is_not_used(tmp_path: Path) -> None:
    assert find_archive(environment(tmp_path / 'a "name"')) is None


def test_a_cache_directory_with_a_space_reaches_the_jvm_as_one_option(tmp_path: Path) -> None:
    found = find_archive(environment(tmp_path / "my cache"))
    assert found is not None
    assert part_of(found.options(make=True)).parent == tmp_path / "my cache" / "plait" / "spark-classes"


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "plait").write_text("a file where the directory would be")
    found = find_archive(environment(tmp_path))
    assert found is not None
    assert found.options(make=True) == ""
    found.discard()


def test_an_archive_that_others_may_have_written_is_not_used(archive: Archive) -> None:
    made(archive)
    archive.directory.chmod(0o777)
    assert archive.options(make=True) == ""
    archive.directory.chmod(0o700)
    assert "SharedArchiveFile" in archive.options(make=True)


def test_archives_nobody_uses_and_pieces_of_them_are_removed(archive: Archive) -> None:
    archive.directory.mkdir(parents=True, mode=0o700)
    old, used = archive.directory / "spark-3.jsa", archive.directory / "spark-4.jsa"
    piece = archive.directory / "spark-3.0.part"
    for path in (old, used, piece):
        path.write_bytes(WHOLE)
    for path in (old, piece):
        os.utime(path, (1, 1))
    archive.options(make=True)
    assert sorted(path for path in archive.directory.iterdir() if path.suffix != ".claim") == [used]


def test_without_a_java_home_the_java_on_the_path_counts(tmp_path: Path) -> None:
    java = shutil.which("java")
    assert java is not None
    found = archives._java_home({"PATH": str(Path(java).parent)})
    assert found == Path(os.path.realpath(java)).parent.parent


def test_the_launcher_finds_all_its_classes_where_it_is_told_they_are(tmp_path: Path) -> None:
    (option,) = launcher_classes()
    home = Path(option.removeprefix("-Xbootclasspath/a:")).parent.parent
    command = ["java", option, "-cp", str(tmp_path), "org.apache.spark.launcher.Main"]
    told = ["org.apache.spark.deploy.SparkSubmit", "--conf", "spark.driver.memory=300m", "pyspark-shell"]
    around = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    outcome = subprocess.run([*command, *told], capture_output=True, text=True, check=True, env=around)
    assert "-Xmx300m" in outcome.stdout.split("\0")


@pytest.mark.parametrize(
    ("home", "jars"),
    [
        ("spark", []),
        ("spark", ["spark-launcher_2.13-4.jar", "spark-launcher_2.12-4.jar"]),
        ("a b", ["spark-launcher_2.jar"]),
    ],
)
def test_without_one_jar_of_a_plain_path_the_launcher_looks_for_itself(
    tmp_path: Path, home: str, jars: list[str]
) -> None:
    (tmp_path / home / "jars").mkdir(parents=True)
    for name in jars:
        (tmp_path / home / "jars" / name).touch()
    assert launcher_classes(tmp_path / home) == ()
