"""The systems there are. Each is a module of this package with its description, `SYSTEM`, and ``run(task)``.

A module is loaded to be described, so it loads what it measures only when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from benchmarks.systems.system import Setting, System
from plait.errors import OptionError

NAMES = ("plait", "spark", "flink", "pathway", "duckdb", "handover")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A system, and one of its modes or None."""

    system: System
    mode: str | None = None

    @property
    def label(self) -> str:
        """What the user called it."""
        return self.system.name if self.mode is None else f"{self.system.name}:{self.mode}"

    @property
    def summary(self) -> str:
        """What it is, in a few words."""
        chosen = (mode.summary for mode in self.system.modes if mode.name == self.mode)
        return next(chosen, self.system.summary)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings it runs with, those of its mode in place of the system's of the same name."""
        own = next((mode.settings for mode in self.system.modes if mode.name == self.mode), ())
        replaced = {setting.name for setting in own}
        return (*(setting for setting in self.system.settings if setting.name not in replaced), *own)


def system(name: str) -> System:
    """Return a system. Raises OptionError."""
    if name not in NAMES:
        raise OptionError(f"unknown system '{name}'; expected one of {', '.join(NAMES)}")
    found: System = import_module(f"benchmarks.systems.{name}").SYSTEM
    return found


def choose(text: str) -> Choice:
    """Return what ``NAME`` or ``NAME:MODE`` stands for. Raises OptionError."""
    name, _, mode = text.partition(":")
    found = system(name)
    known = [each.name for each in found.modes]
    if mode and mode not in known:
        expected = f"expected one of {', '.join(known)}" if known else f"'{name}' has none"
        raise OptionError(f"unknown mode '{mode}' of system '{name}'; {expected}")
    return Choice(system=found, mode=mode or None)
