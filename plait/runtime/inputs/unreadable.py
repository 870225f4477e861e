"""What Spark says about files it cannot read, found in its stack traces and told with what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from plait.sources.connectors import packages_for

_HEADER = re.compile(
    r"CSV header does not conform to the schema\.\s*Header: (?P<header>[^\n]*)\n\s*Schema: (?P<schema>[^\n]*)\n\s*"
    r"Expected: (?P<expected>[^\n]*) but found: (?P<found>[^\n]*)\n\s*CSV file: (?P<file>\S+)"
)
_HEADER_LENGTH = re.compile(
    r"Number of column in CSV header is not equal to number of fields in the schema:\s*"
    r"Header length: (?P<found>\d+), schema size: (?P<expected>\d+)\s*CSV file: (?P<file>\S+)"
)
_PARQUET_TYPE = re.compile(
    r"reading file (?P<file>\S+)\. Data type mismatches when reading Parquet column \[(?P<column>[^\]]+)\]\. "
    r"Expected Spark type (?P<expected>\S+), actual Parquet type (?P<found>[A-Z0-9_]+)"
)
_NO_PARQUET = re.compile(r"(?P<file>\S+) is not a Parquet file")
_NOT_FOUND = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (?P<file>\S+?)\.? ?(?:SQLSTATE|$|\n)")
_NO_DIRECTORY = re.compile(r"Option 'basePath' must be a directory")
_NO_CONNECTOR = re.compile(
    r"(?:\[DATA_SOURCE_NOT_FOUND\] Failed to find the data source|Failed to find data source): (?P<name>[\w.-]*\w)"
)
_NO_SUCH_TYPE = re.compile(
    r"The (?P<format>\w+) datasource doesn't support the column `(?P<column>.+?)` of the type \"(?P<type>.+?)\"\."
)
_NO_PERMISSION = re.compile(r"(?P<file>\S+) \(Permission denied\)")
_GONE = re.compile(r"FILE_NOT_EXIST\][^\n]*?(?P<file>(?:file|hdfs|s3a?|gs|abfss?):\S+?)(?: does not exist|[.,]?\s)")
_RECORDS_GONE = re.compile(r"data may have been (?:lost|missed)")
_VERSION = r"(?:.*? version (?P<version>\d+))?"
_REWRITTEN = re.compile(rf"DELTA_SOURCE_(?:TABLE_IGNORE_CHANGES|IGNORE_DELETE)\]{_VERSION}", re.DOTALL)
_OTHER_COLUMNS = re.compile(r"DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE|DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING")
_MORE_COLUMNS = re.compile(r"DELTA_SCHEMA_CHANGED|DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART")
_COMMITS_GONE = re.compile(
    r"DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE|DELTA_MISSING_FILES_UNEXPECTED_VERSION|DELTA_VERSIONS_NOT_CONTIGUOUS"
)
_OTHER_TABLE = re.compile(r"DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE")
_NO_TABLE = re.compile(
    r"(?:DELTA_MISSING_DELTA_TABLE|DELTA_TABLE_NOT_FOUND|DELTA_PATH_DOES_NOT_EXIST|DELTA_TABLE_ONLY_OPERATION|"
    r"DELTA_SCHEMA_NOT_SET)\]"
)
_NO_TABLE_VERSION = re.compile(
    r"\[(?:DELTA_VERSION_NOT_FOUND|DELTA_TIMESTAMP_(?:GREATER_THAN_COMMIT|EARLIER_THAN_COMMIT_RETENTION))[\w.]*\]"
    r"(?P<says>[^\n]*?)(?: SQLSTATE|\n|$)"
)
_NO_TOPIC = re.compile(r"UnknownTopicOrPartitionException")
_NO_BROKER = re.compile(
    r"Timed out waiting for a node assignment|Timeout expired while fetching topic metadata|"
    r"Failed to construct kafka consumer|Failed to create new KafkaAdminClient"
)
_FAILED = re.compile(r"Encountered error while reading file (?P<file>\S+?)\.\s")
_CAUSE = re.compile(r"Caused by: [\w.$]+: (?P<cause>[^\n]+)")

_POSITION = "or with OPTIONS (enforceSchema 'true') read them by position whatever the header says"


def _header(match: re.Match[str]) -> str:
    return (
        f"the header of {_file(match)} is {match['header']}, the declared columns are {match['schema']}: expected "
        f"'{match['expected']}', found '{match['found']}'. Declare the columns as the files have them, {_POSITION}"
    )


def _header_length(match: re.Match[str]) -> str:
    return (
        f"the header of {_file(match)} has {match['found']} columns, expected the {match['expected']} declared ones. "
        f"Declare the columns as the files have them, {_POSITION}"
    )


def _parquet_type(match: re.Match[str]) -> str:
    advice = "Declare the column with the type that the file has"
    if match["found"] == "INT64" and match["expected"].startswith("timestamp"):
        advice = (
            "If it counts nanoseconds, which Spark has no time for, declare it as BIGINT and write "
            f"timestamp_micros({match['column']} DIV 1000); otherwise declare the type that the file has"
        )
    return (
        f"column '{match['column']}' of {_file(match)} is {match['found']}, expected something to read as "
        f"{match['expected']}. {advice}"
    )


def _no_connector(match: re.Match[str]) -> str:
    if packages_for([match["name"]]):
        return (
            f"this Spark has no data source '{match['name']}'. plait run brings the connector along; a program opens "
            f"its session with plait.runtime.spark.session.open_session(formats=['{match['name']}']), or sets "
            "spark.jars before the session starts"
        )
    return (
        f"this Spark has no data source '{match['name']}'. Correct the name, or add the connector's package: set "
        "spark.jars.packages to its coordinates before the session starts"
    )


def _rewritten(match: re.Match[str]) -> str:
    which = "" if match["version"] is None else f" (version {match['version']})"
    return (
        f"rows of the Delta table were changed or deleted{which}, and streams only gain rows. OPTIONS "
        "(skipChangeCommits 'true') passes over commits that change or delete, readChangeFeed 'true' reads what has "
        "changed; another checkpoint begins anew with the table as it is"
    )


def _no_such_type(match: re.Match[str]) -> str:
    return (
        f"column '{match['column']}' has type {match['type'].lower()}, which {match['format'].lower()} cannot hold. "
        "Declare it as STRING, and take it apart in queries"
    )


_SAYINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_HEADER, _header),
    (_HEADER_LENGTH, _header_length),
    (_PARQUET_TYPE, _parquet_type),
    (_NO_PARQUET, lambda found: f"{_file(found)} is no Parquet file. Remove it, or name the format it has"),
    (_NOT_FOUND, lambda found: f"the path {_file(found)} does not exist. Correct it, or create the directory first"),
    (_GONE, lambda found: f"the file {_file(found)} is gone. Put it back, or use another checkpoint"),
    (_NO_CONNECTOR, _no_connector),
    (_NO_SUCH_TYPE, _no_such_type),
    (_NO_PERMISSION, lambda found: f"no permission to read {_file(found)}. Change its mode"),
    (
        _RECORDS_GONE,
        lambda found: (
            "records of its topic are gone that were not read yet: Kafka has deleted them (retention), or the topic "
            "was deleted or made anew. OPTIONS (failOnDataLoss 'false') goes on with what is there and counts the "
            "offsets that are passed over; another checkpoint begins anew"
        ),
    ),
    (_REWRITTEN, _rewritten),
    (
        _OTHER_COLUMNS,
        lambda found: (
            "columns of the Delta table were renamed, dropped or given another type, which what is stored of it does "
            "not follow. Begin with another checkpoint"
        ),
    ),
    (
        _MORE_COLUMNS,
        lambda found: (
            "the columns of the Delta table have changed while it was read; the next start reads them as they are now"
        ),
    ),
    (
        _COMMITS_GONE,
        lambda found: (
            "commits of the Delta table are gone that were not read yet (delta.logRetentionDuration says how long they "
            "are kept). OPTIONS (failOnDataLoss 'false') goes on with those that are there; another checkpoint begins "
            "anew"
        ),
    ),
    (
        _OTHER_TABLE,
        lambda found: (
            "the Delta table at its path is another one than the checkpoint has read, perhaps because it was deleted "
            "and made anew. Use another checkpoint"
        ),
    ),
    (_NO_TABLE, lambda found: "there is no Delta table at its path. Correct it, or write the table first"),
    (_NO_TABLE_VERSION, lambda found: f"the Delta table has no such version:{found['says'].rstrip('. ')}"),
    (_NO_TOPIC, lambda found: "its topic does not exist. Correct subscribe, or create the topic first"),
    (
        _NO_BROKER,
        lambda found: (
            "no Kafka broker answers. Check kafka.bootstrap.servers (host:port), the network, and "
            "kafka.security.protocol if the brokers want one"
        ),
    ),
    (_NO_DIRECTORY, lambda found: "the path of a stream is a file; a stream reads a directory. Name the directory"),
)


def unreadable(text: str) -> str | None:
    """Return what is wrong with a file, and what to do, from all of Spark's text; None if it is something else."""
    for pattern, saying in _SAYINGS:
        match = pattern.search(text)
        if match is not None:
            return saying(match)
    failed, causes = _FAILED.search(text), _CAUSE.findall(text)
    if failed is None:
        return None
    why = f": {causes[-1].strip().rstrip('. ')}" if causes else ""
    return (
        f"the file {_file(failed)} cannot be read{why}. Remove or repair it, or correct its format, options and columns"
    )


def _file(match: re.Match[str]) -> str:
    """Return the file as the user knows it."""
    return f"'{unquote(re.sub('^file:/+', '/', match['file'])).rstrip('.')}'"
