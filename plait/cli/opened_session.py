"""A Spark session for a command: opened, and stopped, without a word on the screen unless something fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from plait.cli.sparklog import spark_log
from plait.cli.stopping import StopOnSignal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE_SECONDS = 30.0


@contextmanager
def opened_session(
    master: str | None,
    settings: Iterable[tuple[str, str]],
    say: Callable[[str], None],
    *,
    makes_archive: bool = False,
    formats: Collection[str] = (),
) -> Iterator[SparkSession]:
    """Provide a session with these settings of Spark, and the connectors of these formats. Raises KeyboardInterrupt if
    a signal asks for an end while Spark starts, once it has: a JVM that is left before it has told where it listens
    goes on for ever. `say` is told of that, and of a connector that is downloaded.
    """
    # Imported here because Spark takes seconds to load, which other commands must not wait for.
    from plait.runtime.batch.run_errors import naming_an_ended_jvm
    from plait.runtime.spark.session import open_session

    def told() -> None:
        say("interrupted: this ends once Spark has started")

    with spark_log() as log, naming_an_ended_jvm():
        with StopOnSignal(told, patience_seconds=_PATIENCE_SECONDS) as early, log.collecting():
            conf = {name: value for name, value in settings if name != "spark.master"}
            spark = open_session(master, conf, makes_archive=makes_archive, formats=formats, say=say)
        try:
            early.obey()
            yield spark
        finally:
            with suppress(Exception):  # a JVM that is gone cannot be stopped, and what ended the run says more
                spark.stop()


__all__ = ["opened_session"]
