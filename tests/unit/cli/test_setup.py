"""How set-up finds, or installs, Python and Java. The system is a folder of stand-ins on the PATH."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SYSTEM = Path(__file__).parents[3] / "tools" / "system.sh"
OLD, GOOD, BROKEN = "1.8.0_392", "17.0.9", ""


@dataclass(frozen=True)
class System:
    bin: Path

    def add(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def add_java(self, version: str) -> None:
        self.add("java", f"echo 'openjdk version \"{version}\"' >&2")

    def add_python(self, name: str, *, runs: bool = True, ensurepip: bool = True) -> None:
        works = f'case "$2" in *ensurepip*) exit {0 if ensurepip else 1};; *version_info*) exit 0;; esac'
        self.add(name, works if runs else "exit 127")

    def add_apt(self, creates: str = "true") -> None:
        self.add("apt-get", f'echo "apt-get $*" >> {self.bin}/apt.log; [ "$1" = update ] || {{ {creates}; }}')

    def installed(self) -> str:
        log = self.bin / "apt.log"
        return log.read_text() if log.exists() else ""

    def call(self, function: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-eu", "-c", f'. "{SYSTEM}"; {function}'],
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )


@pytest.fixture
def system(tmp_path: Path) -> System:
    for tool in ("sh", "sed", "head", "env", "cp"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    found = System(tmp_path)
    found.add("id", "echo 0")
    return found


def test_a_new_enough_java_is_taken_as_it_is(system: System) -> None:
    system.add_java(GOOD)
    system.add_apt()
    assert system.call("ensure_java").returncode == 0
    assert system.installed() == ""


@pytest.mark.parametrize("present", [None, OLD, "11.0.2"])
def test_a_missing_or_old_java_is_installed_by_apt(system: System, present: str | None) -> None:
    if present:
        system.add_java(present)
    java = system.bin.parent / f"{system.bin.name}-java17"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{GOOD}\"' >&2\n")
    java.chmod(0o755)
    system.add_apt(f"cp {java} {system.bin}/java")
    result = system.call("ensure_java")
    assert result.returncode == 0, result.stderr
    assert "install -q -y --no-install-recommends openjdk-17-jre-headless" in system.installed()


def test_java_21_is_tried_where_17_is_not_to_be_had(system: System) -> None:
    system.add_apt("false")
    assert system.call("ensure_java").returncode == 1
    assert "openjdk-21-jre-headless" in system.installed()


def test_without_apt_the_message_says_what_was_found_and_how_to_get_java(system: System) -> None:
    system.add_java("11.0.2")
    result = system.call("ensure_java")
    assert result.returncode == 1
    for part in ("17 or newer", "found Java 11", "brew install openjdk@21", "JAVA_HOME"):
        assert part in result.stderr


def test_without_root_or_sudo_nothing_is_installed(system: System) -> None:
    system.add("id", "echo 1000")
    system.add_apt()
    assert system.call("ensure_java").returncode == 1
    assert system.installed() == ""


def test_an_old_java_home_is_named_and_not_overruled(system: System, tmp_path: Path) -> None:
    system.add_java(GOOD)
    system.add_apt()
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    System(home / "bin").add_java(OLD)
    result = system.call("ensure_java", JAVA_HOME=str(home))
    assert result.returncode == 1
    assert f"JAVA_HOME={home}" in result.stderr
    assert system.installed() == ""


def test_a_name_on_the_path_that_does_not_run_is_passed_over(system: System) -> None:
    system.add_python("python3.12", runs=False)
    system.add_python("python3.11")
    assert system.call("find_python").stdout.strip() == str(system.bin / "python3.11")


def test_an_interpreter_that_can_make_environments_is_preferred(system: System) -> None:
    system.add_python("python3.12", ensurepip=False)
    system.add_python("python3.10")
    assert system.call("find_python").stdout.strip() == str(system.bin / "python3.10")


def test_the_chosen_interpreter_must_work(system: System) -> None:
    system.add_python("python3.12")
    result = system.call("find_python", PYTHON="/no/such/python")
    assert result.returncode == 1
    assert "PYTHON=/no/such/python is not a working Python 3.10 to 3.13" in result.stderr


def test_without_any_python_the_message_says_which_versions_will_do(system: System) -> None:
    result = system.call("find_python")
    assert result.returncode == 1
    assert "No Python 3.10 to 3.13 was found" in result.stderr


def test_debian_without_its_venv_package_gets_it(system: System) -> None:
    system.add_python("python3.11", ensurepip=False)
    whole = system.bin.parent / f"{system.bin.name}-python"
    whole.write_text("#!/bin/sh\nexit 0\n")
    whole.chmod(0o755)
    system.add_apt(f"cp {whole} {system.bin}/python3.11")
    result = system.call("find_python")
    assert result.stdout.strip() == str(system.bin / "python3.11"), result.stderr
    assert "-venv" in system.installed()


def test_an_interpreter_without_ensurepip_and_no_apt_names_the_package(system: System) -> None:
    system.add_python("python3.11", ensurepip=False)
    result = system.call("find_python")
    assert result.returncode == 1
    assert "cannot make virtual environments" in result.stderr
