"""What a system under test is: how it is called, in which ways it works, with which settings and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting that is not the system's default, and the reason, after the system's own documentation."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A way in which a system goes about its work. `name`: after the colon in ``system:name``."""

    name: str
    summary: str
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system. `environment`: the environment of its own that ``make peers`` prepares, None where Plait's serves, and
    `package` what it is called there.

    `modes`: besides its usual way. `joins`: False for a system that only takes the rows, to show a limit; its results
    are not compared. `is_live`: it also runs on streams that go on arriving.
    """

    name: str
    summary: str
    settings: tuple[Setting, ...] = ()
    modes: tuple[Mode, ...] = ()
    environment: str | None = None
    package: str | None = None
    joins: bool = True
    is_live: bool = False
