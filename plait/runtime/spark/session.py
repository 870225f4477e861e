"""Open a Spark session that suits Plait."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from plait.errors import PlaitError
from plait.runtime.spark.archive import find_archive, launcher_classes
from plait.runtime.spark.connector_jars import jar_settings
from plait.runtime.spark.early_daemon import started_early
from plait.runtime.spark.early_loading import load_beside

_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
_LAUNCHER = "SPARK_LAUNCHER_OPTS"
_JVM_ENDED = "JAVA_GATEWAY_EXITED"
_WORKERS_ENVIRONMENT = "spark.executorEnv."

JVM = {
    # A micro-batch is work to get done, not requests to answer: the collector made for throughput takes a tenth less
    # processor time than the default one, which is made for short pauses.
    #
    # The driver's JVM mostly plans and schedules small jobs, code that is compiled and then hardly run. Its second
    # compiler takes half of the processor time of a short run and gains nothing measurable in a long one (3 x 3 M
    # rows). With a local master tasks run there too, but what takes time in them is Arrow and the kernels. Executors
    # of a cluster live for long and do nothing else, so theirs stays.
    _JVM_OPTIONS: "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
}
LOCAL_DISKS = {
    # Without Hadoop's native library Spark starts a process for every permission it sets and every link it reads on a
    # local disk, about fifty a batch for its offset log. With these two one is left for each file of its logs.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Spark's default, INT96, has no time zone: files written by Spark and by Arrow would differ in type.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Expressions mean what is written: Spark would replace ${env:NAME} by what the machine has, within texts too.
    "spark.sql.variable.substitute": "false",
    # Micro-batch jobs are small and their shuffles have a known size; adaptive execution only adds stages.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.python.worker.reuse": "true",
    "spark.log.level": "ERROR",
    **JVM,
    **LOCAL_DISKS,
}

_DIRECT = {
    # Over TCP, even on one machine, the first exchange of a task with its Python worker waits 40 ms for an
    # acknowledgement that is delayed. Spark below 4.1 does not know of this setting.
    "spark.python.unix.domain.socket.enabled": "true",
}

_LOCAL = {
    # With a local master nobody else calls, and the machine's own name need not be looked up, which may take seconds.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_PRELOADED = {
    # Workers are forked from a process that has loaded what they need, instead of loading it one by one: a second of a
    # processor for each.
    "spark.python.daemon.module": "plait.runtime.spark.daemon",
}

_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"

NAMED_SOURCES = {_EVOLUTION: "true", "spark.sql.streaming.offsetLog.formatVersion": "2"}
"""With these settings streams have names in Spark's offset log, and so can come and go on the same checkpoint.

Spark then wants every stream named (``spark.readStream.name``), and without them none.
"""


_MOST_TASKS = 1 << 14


def has_named_sources(session: SparkSession) -> bool:
    """Tell whether the session's streams are named ones."""
    return bool(session.conf.get(_EVOLUTION, "false") == "true")


def is_ansi(session: SparkSession) -> bool:
    """Tell whether expressions mean what they mean by the standard, and backslashes in texts what they do by default;
    what Plait computes without Spark does.
    """
    wanted = (("spark.sql.ansi.enabled", "true"), ("spark.sql.parser.escapedStringLiterals", "false"))
    return all(str(session.conf.get(name, value)).lower() == value for name, value in wanted)


def time_zone(session: SparkSession) -> str:
    """Return the time zone that the session's expressions are in."""
    return str(session.conf.get("spark.sql.session.timeZone", "UTC"))


def open_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    makes_archive: bool = False,
    formats: Collection[str] = (),
    say: Callable[[str], None] = lambda text: None,
) -> SparkSession:
    """Return a session on `master` (default: all cores of this machine) with Plait's defaults under the given
    settings, and with the connectors that these `formats` need (`plait.sources.connectors`); `say` is told if one is
    downloaded. They are no part of the class path the JVM starts with, so the class-data archive stays good.

    Its JVM starts from the class-data archive (`plait.runtime.spark.archive`) if there is one. `makes_archive`: if not,
    it leaves one behind for later starts, which takes it some seconds after this process has ended.
    """
    load_beside()
    stated = {"spark.master": master or "local[*]", **(conf or {})}
    wanted = {**_DEFAULTS, **NAMED_SOURCES, **_of_master(stated), **stated}
    wanted |= jar_settings(formats, wanted, say=say)
    archive = None if _CLASS_PATH in wanted else find_archive()
    from_archive = archive.options(make=makes_archive) if archive else ""
    try:
        return _open(wanted, from_archive)
    except PySparkRuntimeError as error:
        if archive is None or not from_archive or error.getCondition() != _JVM_ENDED:
            raise _cannot_start(wanted, error) from error
    except Exception as error:
        raise _cannot_start(wanted, error) from error
    # The JVM tells an archive that is not its own, but does not read all of it to find one that has been damaged.
    try:
        session = _open(wanted, "")
    except Exception as error:
        raise _cannot_start(wanted, error) from error
    archive.discard()
    return session


def _of_master(stated: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings for one machine, if the master is on this one."""
    if not _is_local(stated["spark.master"]):
        return {}
    return {**_LOCAL, **(_DIRECT if sockets_are_private() else {}), **(_PRELOADED if finds_plait(stated) else {})}


def sockets_are_private() -> bool:
    """Tell whether nobody else can connect to a socket that this process makes in a directory open to all: whoever may
    write to it can, and Spark asks for no password there.
    """
    if not hasattr(socket, "AF_UNIX"):
        return False
    mask = os.umask(0o077)
    os.umask(mask)
    return mask & 0o022 == 0o022


def finds_plait(stated: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether a process that Spark starts for Python workers is sure to find this Plait: it is a fresh interpreter
    like this one, which has Plait installed, or is told where it is.
    """
    chosen = stated.get("spark.pyspark.python") or environment.get("PYSPARK_PYTHON") or sys.executable
    if os.path.abspath(chosen) != os.path.abspath(sys.executable):
        return False
    place = str(Path(__file__).absolute().parents[3])
    told = environment.get("PYTHONPATH", "").split(os.pathsep)
    return place in map(os.path.abspath, filter(None, told)) or _is_installed()


def _is_installed() -> bool:
    try:
        return bool(distribution("plait").files)
    except PackageNotFoundError:
        return False


def _open(conf: Mapping[str, str], jvm_options: str) -> SparkSession:
    # Spark looks for the setting only where a program is handed to spark-submit, and else for the variable.
    if "spark.pyspark.python" in conf:
        os.environ["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("plait")
    for name, value in {**conf, _JVM_OPTIONS: f"{conf[_JVM_OPTIONS]} {jvm_options}".strip()}.items():
        builder = builder.config(name, value)
    with _quick_launcher(), _workers_loading(conf):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _workers_loading(conf: Mapping[str, str]) -> AbstractContextManager[None]:
    """Let what Python workers need be loaded while a JVM starts, if they are Plait's own and get no environment that
    this program lacks.
    """
    is_ours = conf.items() >= {**_PRELOADED, **_DIRECT}.items()
    is_like_this = not any(name.startswith(_WORKERS_ENVIRONMENT) for name in conf)
    has_jvm = SparkSession.getActiveSession() is not None
    return started_early() if is_ours and is_like_this and not has_jvm else nullcontext()


def _cannot_start(conf: Mapping[str, str], error: Exception) -> PlaitError:
    return PlaitError(
        f"Spark could not start on '{conf['spark.master']}': {error}. Check the master URL, and "
        "that Java 17 or newer is installed."
    )


@contextmanager
def _quick_launcher() -> Iterator[None]:
    """Spare the JVM that only works out Spark's command line what it needs to live for long, and the search for its
    few classes through all of Spark's jars, which takes most of its time.
    """
    if _LAUNCHER in os.environ:
        yield
        return
    os.environ[_LAUNCHER] = " ".join(("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", *launcher_classes()))
    try:
        yield
    finally:
        del os.environ[_LAUNCHER]


def take_running_interpreter(session: SparkSession) -> None:
    """Let Python workers of a local session run in the interpreter that runs this program, where the user has not
    chosen another: Spark would take whatever ``python3`` is on the path, which need not have Plait.
    """
    chosen = "PYSPARK_PYTHON" in os.environ or session.conf.get("spark.pyspark.python", None)
    context = getattr(session, "sparkContext", None)
    if has_one_executor(session) and not chosen and context is not None:
        context.pythonExec = sys.executable


def parallelism_of(session: SparkSession) -> int:
    """Return how many tasks run at a time on this session's cluster, by its settings or by the executors there are.

    On a cluster this is a Spark job, which waits for the first executor.
    """
    master = session.conf.get("spark.master", "") or ""
    if master.startswith("local["):
        cores = master[len("local[") :].rstrip("]").split(",")[0]
        return (os.cpu_count() or 1) if cores == "*" else int(cores)
    if master == "local":
        return 1
    # Spark cuts a range into `spark.default.parallelism` parts; where that is not set, one for each core it has.
    parts = session.range(_MOST_TASKS).selectExpr("spark_partition_id() AS part").selectExpr("max(part) + 1")
    return int(parts.collect()[0][0])


def has_one_executor(session: SparkSession) -> bool:
    """Tell whether every task runs in this process's family, on this machine, so that it can map every bucket.

    A cluster may have a single executor now and several in a minute, so it counts as several.
    """
    return _is_local(session.conf.get("spark.master", "") or "")


def _is_local(master: str) -> bool:
    return master.startswith("local[") or master == "local"
