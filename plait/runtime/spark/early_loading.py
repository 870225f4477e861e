"""Have this process load Arrow, Numba, the kernels and what plans while Spark starts, which mostly is waiting.

Nothing that imports Spark: two threads that load modules which import each other may find them half made.
"""

from __future__ import annotations

import logging
from importlib import import_module
from threading import Thread

_LOG = logging.getLogger(__name__)
_MODULES = (
    "plait.runtime.spark.tasks",
    "plait.adapt.adapter",
    "plait.operators.ingest.derivable",
    "plait.operators.traversal.sampler",
    "plait.operators.traversal.slicing",
    "plait.operators.close.next_manifest",
    "plait.operators.close.restoring",
    "plait.plan.explain",
    "plait.sinks",
)
"""Most of what the engine imports."""


def load_beside() -> None:
    """Begin to load. Returns at once."""
    Thread(target=_load, name="plait-loading", daemon=True).start()


def _load() -> None:
    try:
        for module in _MODULES:
            import_module(module)
        import_module("plait.kernels.warm").warm()
    except Exception as error:  # whoever needs it meets it again, and can say so
        _LOG.debug("nothing could be loaded beside: %s", error)


__all__ = ["load_beside"]
