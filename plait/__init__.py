"""Plait: many continuous multi-way join queries over the same streams, on Spark, as one shared plan."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plait.errors import PlaitError
from plait.version import __version__

if TYPE_CHECKING:
    from plait import sinks
    from plait.runtime.engine import Engine


def __getattr__(name: str) -> Any:
    """Import the engine, and with it Spark, and the sinks, and with them Arrow, only when they are used."""
    if name == "sinks":
        return import_module("plait.sinks")
    if name == "Engine":
        from plait.runtime.engine import Engine

        return Engine
    raise AttributeError(f"module 'plait' has no attribute '{name}'")


__all__ = ["Engine", "PlaitError", "__version__", "sinks"]
