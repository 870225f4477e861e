"""Wrong scripts: each is caught without Spark, where it is wrong (the place marked ▸), and told what to do."""

from pathlib import Path

import pytest

from plait.errors import OptionError, PlacedError, SinkError, SourceError, SqlError, UnsupportedQueryError
from plait.sql import check_script, load_script

SOURCES = """\
CREATE STREAM o (id BIGINT, k INT, city STRING, addr STRUCT<City: STRING>, flag BOOLEAN, d DATE, tags ARRAY<INT>,
  ts TIMESTAMP) USING parquet OPTIONS (path 'in') TIMESTAMP BY ts WINDOW INTERVAL 30 SECONDS;
CREATE STREAM l (oid BIGINT, k INT, qty INT, ts TIMESTAMP) USING parquet OPTIONS (path 'in') TIMESTAMP BY ts;
CREATE TABLE n (k STRING, code INT) USING parquet OPTIONS (path 'in');
"""

OPTION_VALUES = (
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸encoding 'utf8')", "expected UTF-8, ISO-8859-1"),
    ("CREATE TABLE t (a INT) USING json OPTIONS (path 'in', ▸charset 'latin1')", "expected UTF-8, ISO-8859-1"),
    ("CREATE TABLE t USING text OPTIONS (path 'in', ▸encoding 'ISO-8859-1')", "expected UTF-8"),
    ("CREATE TABLE t (a INT) USING json OPTIONS (path 'in', ▸encoding 'UTF-16')", "add multiLine 'true'"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸encoding 'UTF-16LE')", "add lineSep"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸sep '')", "expected at least one character"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', sep ';', ▸delimiter ',')", "leave one of them out"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸quote '\"\"')", "expected a single character"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸lineSep 'abc')", "one character or two"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸mode 'drop')", "expected permissive, dropmalformed"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸header 'yes')", "expected true or false"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸timeZone 'Mars/X')", "a time zone such as Europe/Berlin"),
    ("CREATE TABLE t (a DATE) USING csv OPTIONS (path 'in', ▸dateFormat 'YYYY-MM-dd')", "use y for the year"),
    (
        "CREATE TABLE t (a DATE) USING json OPTIONS (path 'in', ▸timestampFormat '%Y-%m-%d')",
        "Java's letters are wanted",
    ),
    ("CREATE TABLE t (a DATE) USING csv OPTIONS (path 'in', ▸dateFormat 'yyyy-MM-ddTHH')", "write it as 'T'"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸modifiedAfter 'yesterday')", "2026-01-31T10:00:00"),
    ("CREATE STREAM s USING rate OPTIONS (▸rowsPerSecond '-1') TIMESTAMP BY timestamp", "a whole number above zero"),
    ("CREATE STREAM s USING rate OPTIONS (▸rampUpTime '5 seconds') TIMESTAMP BY timestamp", "without a blank"),
    ("CREATE STREAM s USING ▸socket OPTIONS (port 9) TIMESTAMP BY to_date(value)", "add OPTIONS (host 'localhost')"),
    ("CREATE STREAM s USING socket OPTIONS (host 'h', ▸port 99999) TIMESTAMP BY to_date(value)", "1 to 65535"),
    ("CREATE STREAM s USING ▸kafka OPTIONS (subscribe 'a') TIMESTAMP BY timestamp", "kafka.bootstrap.servers 'host"),
    (
        "CREATE STREAM s USING kafka OPTIONS (kafka.bootstrap.servers 'h:1', assign '{}', ▸subscribe 'a') "
        "TIMESTAMP BY timestamp",
        "leave one of them out",
    ),
    *(
        (f"CREATE STREAM s USING delta OPTIONS (path 'in', {option}) TIMESTAMP BY ts", says)
        for option, says in (
            ("▸ignoreChanges 'true'", "results would come twice; skipChangeCommits 'true'"),
            ("▸ignoreFileDeletion 'true'", "has given way to ignoreDeletes 'true'"),
            ("▸readChangeData 'true'", "the old name of readChangeFeed"),
            ("▸schemaTrackingLocation 'x'", "begin with another checkpoint"),
            ("▸startingVersion '-1'", "expected the number of a version, or latest"),
            ("▸maxBytesPerTrigger '10 MB'", "such as 64m"),
            ("startingVersion '1', ▸startingTimestamp '2026-01-01'", "leave one of them out"),
            ("▸versionAsOf '3'", "has no effect on a stream; leave it out, or use CREATE TABLE"),
            ("▸mergeschema 'true'", "delta has no option 'mergeschema'"),
        )
    ),
    ("CREATE TABLE t USING delta OPTIONS (path 'in', ▸skipChangeCommits 'true')", "no effect on a table"),
    ("▸CREATE STREAM s USING delta TIMESTAMP BY ts", "delta needs the path of what to read"),
    ("CREATE STREAM s USING ▸rate-micro-batch TIMESTAMP BY timestamp", "needs the option rowsPerBatch"),
    ("CREATE TABLE t (a INT) USING ▸xml OPTIONS (path 'in')", "needs the option rowTag"),
    *(
        (f"CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in', ▸{option}) TIMESTAMP BY ts", says)
        for option, says in (
            ("maxFilesPerTrigger '0'", "a whole number above zero"),
            ("maxBytesPerTrigger '10m'", "a whole number above zero"),
            ("maxFileAge '7 days'", "such as 7d"),
            ("maxCachedFiles '-1'", "at least 0"),
            ("discardCachedInputRatio 2", "a share above 0"),
        )
    ),
    *(
        (f"CREATE QUERY q INTO csv OPTIONS (path 'out', ▸{option}) AS SELECT id FROM o", says)
        for option, says in (
            ("compression 'zstd'", "expected none, uncompressed, bzip2"),
            ("encoding 'x'", "expected UTF-8"),
            ("quote 'ab'", "a single character"),
            ("sep ''", "at least one character"),
            ("dateFormat 'yyyy-MM-dd HH:mm'", "the letter H says what such a value has not got"),
            ("extension 'text'", "three letters"),
        )
    ),
    (
        "CREATE QUERY q INTO json OPTIONS (path 'out', compression 'gzip', ▸lineSep '') AS SELECT id FROM o",
        "at least one",
    ),
    ("CREATE QUERY q INTO csv OPTIONS (path 'o', sep ',', ▸delimiter ';') AS SELECT id FROM o", "say the same thing"),
)
"""Values that Spark fails on in the first batch, or takes for others without a word."""

DECLARED = (
    ("CREATE TABLE t (a INT) USING ▸text OPTIONS (path 'in')", "text has one column, of type STRING; declare (value"),
    ("CREATE TABLE t (a STRING, b STRING) USING ▸text OPTIONS (path 'in')", "text has one column"),
    ("CREATE STREAM s (ts TIMESTAMP) USING ▸rate TIMESTAMP BY ts", "rate has no column ts TIMESTAMP; it always has"),
    ("CREATE TABLE t (path STRING) USING ▸binaryFile OPTIONS (path 'in')", "leave the declaration of columns out"),
    (
        "CREATE STREAM s (k STRING) USING ▸kafka OPTIONS (kafka.bootstrap.servers 'h:1', subscribe 'a') TIMESTAMP BY k",
        "kafka has no column k STRING",
    ),
    ("CREATE TABLE t (a INT) USING ▸delta OPTIONS (path 'in')", "a table of delta says itself which columns it has"),
    ("CREATE TABLE t (_corrupt_record INT) USING ▸csv OPTIONS (path 'in')", "declare it as STRING"),
)
"""Columns that a format does not have, whatever is declared."""

STATEMENTS: tuple[tuple[str, type[PlacedError], str], ...] = (
    # what is no statement, or breaks off
    ("▸SELEC 1", SqlError, "expected CREATE STREAM"),
    ("▸SELECT id FROM o", SqlError, "CREATE QUERY name INTO"),
    ("▸CRATE TABLE t USING csv", SqlError, "did you mean 'CREATE'"),
    ("CREATE ▸STREM s USING rate TIMESTAMP BY ts", SqlError, "did you mean 'STREAM'"),
    ("CREATE ▸INDEX v ON o (id)", SqlError, "expected STREAM, TABLE, VIEW or QUERY"),
    # words of other systems
    ("CREATE VIEW v AS SELECT 1▸", SqlError, "has no FROM"),
    ("CREATE VIEW v ▸(a) AS SELECT id FROM o", SqlError, "in its SELECT list"),
    ("CREATE VIEW v ▸INTO noop AS SELECT id FROM o", SqlError, "a view writes nothing"),
    ("▸CREATE VIEW o AS SELECT id FROM l", SqlError, "'o' exists already"),
    ("CREATE VIEW v AS SELECT id FROM o;\n▸CREATE VIEW V AS SELECT id FROM o", SqlError, "'V' exists already"),
    ("CREATE VIEW v AS SELECT w.id FROM ▸w;\nCREATE VIEW w AS SELECT id FROM v", SqlError, "a circle"),
    ("CREATE VIEW v AS SELECT id, ▸nope FROM o;\nCREATE QUERY q INTO noop AS SELECT id FROM v", SqlError, "'nope'"),
    ("CREATE VIEW v WINDOW (▸x UNBOUNDED) AS SELECT id FROM o", SqlError, "no relation of the query"),
    ("CREATE VIEW v AS SELECT id FROM o;\nCREATE QUERY q INTO noop AS SELECT v.id + ▸x.k AS s FROM v", SqlError, "'x'"),
    ("DROP ▸VIEW v", SqlError, "DROP VIEW is not needed"),
    (
        "CREATE QUERY g INTO noop AS SELECT count(*) AS n FROM o ▸GROUP BY window(ts, '1 day');\n"
        "CREATE QUERY q INTO noop AS SELECT n FROM g",
        UnsupportedQueryError,
        "'g' groups, and cannot be read so: other queries read the groups of a CREATE QUERY if",
    ),
    ("CREATE ▸MATERIALIZED VIEW v AS SELECT 1", SqlError, "CREATE QUERY name INTO parquet"),
    ("CREATE ▸SINK s FROM v", SqlError, "one statement: CREATE QUERY"),
    ("CREATE ▸SOURCE s (a INT) WITH (connector = 'kafka')", SqlError, "is CREATE STREAM name USING"),
    ("▸INSERT INTO s SELECT id FROM o", SqlError, "one statement: CREATE QUERY"),
    ("CREATE STREAM s (a INT, ts TIMESTAMP) ▸WITH (kafka_topic = 'a')", SqlError, "write USING and the format"),
    ("CREATE STREAM s (ts TIMESTAMP, ▸WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) USING mine", SqlError, "DELAY INT"),
    ("CREATE STREAM s (a INT, ▸PRIMARY KEY (a) NOT ENFORCED) USING mine", SqlError, "leave it out"),
    ("CREATE STREAM s (ts TIMESTAMP) USING mine ▸WATERMARK FOR ts AS ts", SqlError, "TIMESTAMP BY ts DELAY INTERVAL"),
    ("CREATE STREAM s (a BIGINT, ts ▸AS timestamp_millis(a)) USING mine", SqlError, "TIMESTAMP BY takes an expression"),
    ("CREATE ▸OR REPLACE STREAM s USING rate TIMESTAMP BY ts", SqlError, "OR REPLACE is not supported"),
    ("CREATE STREAM ▸IF NOT EXISTS s USING rate TIMESTAMP BY ts", SqlError, "leave it out"),
    ("CREATE STREAM ▸", SqlError, "expected the name of the stream, found the end"),
    ("CREATE STREAM db▸.s USING rate TIMESTAMP BY ts", SqlError, "one part only"),
    ("CREATE STREAM ▸`a-b` USING rate TIMESTAMP BY timestamp", SqlError, "letters, digits and underscores"),
    ("CREATE STREAM ▸args USING rate TIMESTAMP BY timestamp", SqlError, "is reserved"),
    ("CREATE STREAM ▸größe USING rate TIMESTAMP BY timestamp", SqlError, "must stand in backquotes"),
    ("DROP ▸STREAM o", SqlError, "DROP QUERY name"),
    ("DROP QUERY qx ▸y", SqlError, "expected ';'"),
    ("CREATE STREAM s USING csv OPTIONS (path ▸'in) TIMESTAMP BY ts", SqlError, "never closed; add the missing '"),
    ("CREATE STREAM s ▸/* USING csv", SqlError, "add the missing */"),
    (
        "CREATE TABLE t (a INT) USING csv OPTIONS (path 'in') ▸CREATE QUERY q INTO noop AS SELECT id FROM o",
        SqlError,
        "';'",
    ),
    ("CREATE QUERY q INTO noop AS SELECT id FROM o ▸CREATE QUERY p INTO noop AS SELECT id FROM o", SqlError, "';'"),
    ("CREATE QUERY q INTO noop AS SELECT o.id FROM o\n▸SET plait.strategy = ilp", SqlError, "expected ';' before SET"),
    ("SET plait.strategy = ilp\n▸DROP QUERY q", SqlError, "expected ';' before DROP: it ends each statement"),
    ("SET spark.driver.memory = '2g'\n▸CREATE TABLE t (a INT) USING csv OPTIONS (path 'in')", SqlError, "expected ';'"),
    # streams and tables
    ("CREATE STREAM s USING rate▸", SqlError, "needs TIMESTAMP BY"),
    ("CREATE STREAM s USING csv ▸(path 'in') TIMESTAMP BY ts", SqlError, "expected OPTIONS before '(': OPTIONS (path"),
    ("CREATE QUERY q INTO csv ▸(path 'out') AS SELECT id FROM o", SqlError, "expected OPTIONS before '('"),
    ("CREATE STREAM s ▸TIMESTAMP BY ts", SqlError, "expected USING"),
    ("CREATE STREAM s USING rate TIMESTAMP ▸ts", SqlError, "expected BY after TIMESTAMP"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp ▸WINDW INTERVAL 1 HOUR", SqlError, "did you mean 'WINDOW'"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp WINDOW ▸5 SECONDS", SqlError, "write INTERVAL before it"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp DELAY ▸'5 seconds'", SqlError, "write INTERVAL before it"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp WINDOW ▸UNBOUNDD", SqlError, "did you mean 'UNBOUNDED'"),
    *(
        (f"CREATE STREAM s USING rate TIMESTAMP BY timestamp WINDOW INTERVAL {length} ▸{rest}", SqlError, answer)
        for length in ("5 SECONDS", "'5 seconds'", "'5' SECONDS", "'0:05' MINUTE TO SECOND")
        for rest, answer in (
            ("DELAI INTERVAL 1 SECOND", "did you mean 'DELAY'"),
            ("TIMSTAMP BY value", "did you mean 'TIMESTAMP BY'"),
            ("OPTION (idle '1 second')", "did you mean 'OPTIONS'"),
            ("LATENESS INTERVAL 1 SECOND", "write DELAY INTERVAL 5 SECONDS"),
            (", DELAY INTERVAL 1 SECOND", "without a comma"),
        )
    ),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp ▸WITHIN 1 MINUTE", SqlError, "write WINDOW INTERVAL 1 MINUTE"),
    ("CREATE STREAM s USING rate ▸EVENT TIME timestamp", SqlError, "write TIMESTAMP BY ts"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp; ▸DELAY INTERVAL 1 SECOND", SqlError, "leave out the ';'"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp WINDOW ▸INTERVAL 0 SECONDS", SqlError, "longer than zero"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp WINDOW ▸INTERVAL -5 SECONDS", SqlError, "longer than zero"),
    (
        "CREATE STREAM s USING rate TIMESTAMP BY timestamp WINDOW ▸INTERVAL 1 MONTH",
        SqlError,
        "no fixed length; use days",
    ),
    (
        "CREATE STREAM s USING rate TIMESTAMP BY timestamp WINDOW ▸INTERVAL 1 YEAR",
        SqlError,
        "no fixed length; use days",
    ),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp DELAY ▸INTERVAL -1 SECOND", SqlError, "cannot be negative"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp DELAY ▸UNBOUNDED", SqlError, "say how late rows may come"),
    ("CREATE STREAM s USING rate TIMESTAMP BY timestamp ▸TIMESTAMP BY value", SqlError, "given twice; keep one"),
    ("CREATE STREAM s USING rate TIMESTAMP BY ▸tmestamp", SqlError, "did you mean 'timestamp'"),
    ("CREATE STREAM s USING rate TIMESTAMP BY ▸value", SqlError, "write timestamp_millis(value) if it counts"),
    ("CREATE STREAM s (ts TIMESTAMP, ▸TS INT) USING mine TIMESTAMP BY ts", SqlError, "declared twice"),
    ("CREATE STREAM s (a ▸TEXT) USING mine TIMESTAMP BY a", SqlError, "use STRING"),
    (
        "CREATE STREAM s USING ▸csv OPTIONS (path 'in') TIMESTAMP BY ts",
        SqlError,
        "write CREATE STREAM s (id BIGINT, ...)",
    ),
    ("CREATE STREAM s (ts TIMESTAMP) USING ▸parqet OPTIONS (path 'in') TIMESTAMP BY ts", SqlError, "'parquet'?"),
    ("▸CREATE STREAM s (ts TIMESTAMP) USING parquet TIMESTAMP BY ts", OptionError, "add OPTIONS (path"),
    (
        "CREATE STREAM s (id ARRAY<INT>, ts TIMESTAMP) USING ▸csv OPTIONS (path 'in') TIMESTAMP BY ts",
        SqlError,
        "column 'id' has type array<int>, which csv cannot hold; declare it as STRING, and take it apart in queries, "
        "as in split(id, ' ')",
    ),
    (
        "CREATE TABLE t (a STRUCT<b: INT>) USING ▸csv OPTIONS (path 'in')",
        SqlError,
        "from_json(a, 'struct<b:int>')",
    ),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (▸path 'nowhere')", SourceError, "nowhere' does not exist"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (▸path 'in/*.nothing')", SourceError, "nothing matches"),
    ("CREATE TABLE t USING parquet OPTIONS (▸path 'broken.parquet')", SourceError, "remove or repair it"),
    ("CREATE TABLE t USING parquet OPTIONS (▸path 'empty')", SourceError, "declare the columns"),
    ("CREATE TABLE t USING ▸rate", SqlError, "use CREATE STREAM"),
    ("CREATE TABLE t USING csv OPTIONS (path 'in') ▸WINDOW INTERVAL 1 HOUR", SqlError, "use CREATE STREAM"),
    ("CREATE TABLE t ▸AS SELECT 1", SqlError, "USING parquet OPTIONS"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸idle '5 seconds')", OptionError, "for streams"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path ▸in)", SqlError, "in quotes"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸PATH 'in')", SqlError, "given twice"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸rows 'many')", OptionError, "expected a number"),
    ("CREATE TABLE t (ab INT) USING csv OPTIONS (path 'in', ▸distinct.abb 5)", OptionError, "did you mean 'ab'"),
    ("CREATE STREAM s USING rate OPTIONS (▸idle '1 month') TIMESTAMP BY timestamp", OptionError, "use days"),
    ("CREATE STREAM s USING rate OPTIONS (▸keep 'some') TIMESTAMP BY timestamp", OptionError, "needed or all"),
    (
        "CREATE STREAM s USING rate OPTIONS (▸deadLetter 'broken.parquet') TIMESTAMP BY timestamp",
        OptionError,
        "is a file",
    ),
    ("▸CREATE TABLE o (a INT) USING csv OPTIONS (path 'in')", SqlError, "exists already"),
    # queries as a whole
    ("CREATE QUERY q ▸AS SELECT id FROM o", SqlError, "expected INTO"),
    ("CREATE QUERY q INTO memory ▸SELECT id FROM o", SqlError, "expected AS"),
    ("CREATE QUERY q INTO memory AS▸", SqlError, "expected a SELECT"),
    ("CREATE QUERY q INTO ▸parqet OPTIONS (path 'out') AS SELECT id FROM o", SqlError, "did you mean 'parquet'"),
    ("CREATE QUERY q INTO ▸delta AS SELECT id FROM o", OptionError, "delta needs the path to write to"),
    ("CREATE QUERY q INTO ▸foreach AS SELECT id FROM o", SqlError, "use it from Python"),
    ("CREATE QUERY q INTO ▸parquet AS SELECT id FROM o", OptionError, "OPTIONS (path 'out/q')"),
    ("CREATE QUERY q INTO csv OPTIONS (▸path 'broken.parquet') AS SELECT id FROM o", SinkError, "choose another path"),
    ("CREATE QUERY q INTO csv OPTIONS (▸path '~/out') AS SELECT id FROM o", SinkError, "not your home"),
    ("CREATE QUERY q INTO csv OPTIONS (▸path 'broken.parquet/x') AS SELECT id FROM o", SinkError, "cannot be made"),
    ("CREATE QUERY q INTO csv OPTIONS (path 'out', ▸haeder 'true') AS SELECT id FROM o", OptionError, "did you mean"),
    ("CREATE QUERY q INTO json OPTIONS (path 'out', ▸Sep ';') AS SELECT id FROM o", OptionError, "no effect"),
    ("CREATE QUERY q INTO memory OPTIONS (▸path 'out') AS SELECT id FROM o", OptionError, "it takes none"),
    ("CREATE QUERY q INTO csv OPTIONS (path 'out', ▸mode 'append') AS SELECT id FROM o", OptionError, "existing 'app"),
    (
        "CREATE QUERY q INTO csv OPTIONS (path 'out', ▸partitionBy 'cty') AS SELECT id, city FROM o",
        OptionError,
        "'city'",
    ),
    ("CREATE QUERY q INTO csv OPTIONS (path 'out', ▸PARTITIONBY 'id') AS SELECT id FROM o", OptionError, "leave one"),
    ("CREATE QUERY q INTO csv OPTIONS (path 'out') AS SELECT ▸tags FROM o", SqlError, "write to_json"),
    (
        "CREATE QUERY q INTO noop AS SELECT o.addr▸:city::string FROM o",
        UnsupportedQueryError,
        "write variant_get(..., '$.city'",
    ),
    (
        "CREATE QUERY q INTO noop AS SELECT parse_json('{}')▸:a.b FROM o",
        UnsupportedQueryError,
        "write variant_get(..., '$.a'",
    ),
    (
        "CREATE QUERY q INTO csv OPTIONS (path 'out') AS SELECT o.id, ▸addr AS b FROM o",
        SqlError,
        "'b' has type struct<",
    ),
    ("CREATE QUERY q INTO csv OPTIONS (▸path 'in/out') AS SELECT id FROM o", SinkError, "which stream 'o' reads"),
    ("CREATE QUERY q INTO csv OPTIONS (▸path 'empty/../in') AS SELECT id FROM o", SinkError, "stream 'o' reads"),
    ("CREATE QUERY q INTO csv OPTIONS (▸path '.') AS SELECT id FROM o", SinkError, "holds '"),
    (
        "CREATE STREAM s USING rate OPTIONS (▸deadLetter 'in/dead') TIMESTAMP BY timestamp",
        SinkError,
        "which stream 'o' reads",
    ),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv "
        "OPTIONS (path 'empty', cleanSource 'archive', ▸sourceArchiveDir 'in/done') TIMESTAMP BY ts",
        SinkError,
        "which stream 'o' reads",
    ),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (▸path 'in', cleanSource 'delete') TIMESTAMP BY ts",
        SinkError,
        "what stream 'o' reads, and cleanSource would take files away from there",
    ),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv "
        "OPTIONS (path 'empty', cleanSource 'archive', sourceArchiveDir 'done') TIMESTAMP BY ts; "
        "CREATE QUERY q INTO csv OPTIONS (▸path 'done/q') AS SELECT id FROM o",
        SinkError,
        "where stream 's' moves the files it has read",
    ),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv "
        "OPTIONS (path 'empty', cleanSource 'archive', ▸sourceArchiveDir 'broken.parquet') TIMESTAMP BY ts",
        OptionError,
        "is a file, but a directory is written",
    ),
    (
        "CREATE QUERY p INTO csv OPTIONS (path 'out') AS SELECT id FROM o; "
        "CREATE QUERY q INTO json OPTIONS (▸path 'out/q') AS SELECT id FROM o",
        SinkError,
        "which query 'p' writes to",
    ),
    (
        "CREATE QUERY q INTO memory WINDOW (▸x INTERVAL 1 HOUR) AS SELECT id FROM o",
        SqlError,
        "no relation of the query",
    ),
    ("CREATE QUERY q INTO memory WINDOW (o ▸INTERVAL 1 MONTH) AS SELECT id FROM o", SqlError, "no fixed length"),
    ("DROP QUERY a; ▸DROP QUERY a", SqlError, "there is no query 'a' to drop"),
    # options
    ("▸SET plait.stratgy = greedy", OptionError, "did you mean 'plait.strategy'"),
    ("▸SET plait.strategy = best", OptionError, "expected fixed, selectivity, greedy"),
    ("▸SET plait.parallelism = 0", OptionError, "a whole number from 1"),
    ("SET plait.routing▸", SqlError, "and a value"),
    ("▸SET plait.storage_rows = -1", OptionError, "at least 0"),
    ("▸SET plait.cache_bytes = '10 GiB'", OptionError, "a number of bytes above zero, such as 10737418240"),
    ("▸SET plait.storage_bytes = '1 GB'", OptionError, "a number of bytes of at least 0, such as 1073741824"),
    ("▸SET plait.capacity = 0", OptionError, "above zero"),
    ("▸SET plait.batch_rows = 0", OptionError, "above zero, or none"),
    ("▸SET plait.batch_rows = 'many'", OptionError, "above zero, or none"),
    ("▸SET plait.gap = 2", OptionError, "a share from 0 to 1"),
    ("▸SET plait.compaction = maybe", OptionError, "true, false, on or off"),
    ("▸SET plait.parallelism.oo = 2", OptionError, "there is no stream or table 'oo'; did you mean 'o'"),
    ("▸SET spark.sql.session.timeZone = 'Europe/Rome'", OptionError, "Plait needs UTC"),
    ("▸SET spark.sql.ansi.enabled = false", OptionError, "Plait needs true"),
    ("▸SET spark.sql.caseSensitive = true", OptionError, "Plait needs false"),
    ("▸SET spark.sql.timestampType = TIMESTAMP_NTZ", OptionError, "write TIMESTAMP_NTZ where"),
    ("▸SET spark.sql.legacy.typeCoercion.datetimeToString.enabled = true", OptionError, "changes what expressions"),
    ("▸SET spark.sql.streaming.checkpointLocation = 'x'", OptionError, "--checkpoint DIR"),
    # options of sources
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸haeder 'true')", OptionError, "did you mean 'header'"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸header 'yes')", OptionError, "expected true or false"),
    ("CREATE TABLE t (a INT) USING json OPTIONS (path 'in', ▸header 'true')", OptionError, "json has no option"),
    ("CREATE TABLE t (a INT) USING json OPTIONS (path 'in', ▸mode 'permisive')", OptionError, "dropmalformed"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸quoteAll 'true')", OptionError, "is for writing csv"),
    ("CREATE TABLE t (a INT) USING csv OPTIONS (path 'in', ▸maxFilesPerTrigger '1')", OptionError, "on a table"),
    ("CREATE TABLE t (a INT) USING parquet OPTIONS (path 'in', ▸sep ';')", OptionError, "parquet has no option 'sep'"),
    *((statement, OptionError, says) for statement, says in OPTION_VALUES),
    *((statement, SqlError, says) for statement, says in DECLARED),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in', maxBytesPerTrigger '1', ▸maxFilesPerTrigger 1) "
        "TIMESTAMP BY ts",
        OptionError,
        "leave one of them out",
    ),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in', ▸maxFilePerTrigger 1) TIMESTAMP BY ts",
        OptionError,
        "did you mean 'maxFilesPerTrigger'",
    ),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in', ▸deadleter 'x') TIMESTAMP BY ts",
        OptionError,
        "did you mean 'deadLetter'",
    ),
    (
        "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'in', ▸modifiedAfter '2024-01-01') TIMESTAMP BY ts",
        OptionError,
        "use CREATE TABLE",
    ),
    ("CREATE STREAM s USING rate OPTIONS (▸rowsPerSecnd 5) TIMESTAMP BY timestamp", OptionError, "rowsPerSecond"),
    ("CREATE STREAM s USING rate OPTIONS (▸rowsPerSecond 'x') TIMESTAMP BY timestamp", OptionError, "above zero"),
    *(
        (
            f"CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 'empty', {options}) TIMESTAMP BY ts",
            OptionError,
            says,
        )
        for options, says in (
            ("▸maxBytesPerTrigger '1m'", "expected a whole number above zero"),
            ("▸maxFileAge '7 days'", "such as 7d"),
            ("▸maxCachedFiles '-1'", "at least 0"),
            ("▸discardCachedInputRatio '7'", "a share above 0"),
            ("▸quote 'ab'", "a single character"),
            ("▸comment '##'", "a single character"),
            ("▸sep ''", "at least one character"),
            ("▸lineSep ''", "one character or two"),
            ("▸encoding 'latin1'", "ISO-8859-1"),
            ("▸unescapedQuoteHandling 'skip'", "SKIP_VALUE"),
            ("▸columnPruning 'no'", "expected true or false"),
            ("▸cleanSource 'archive'", "sourceArchiveDir 'directory'"),
            ("▸sourceArchiveDir 'old'", "without cleanSource 'archive'"),
            ("cleanSource 'delete', ▸sourceArchiveDir 'old'", "without cleanSource 'archive'"),
            ("▸inferSchema 'true'", "no effect where columns are declared"),
            ("▸samplingRatio '0.5'", "no effect where columns are declared"),
        )
    ),
    *(
        (
            f"CREATE STREAM s (ts TIMESTAMP, x {type_}) USING {format_} OPTIONS (path 'in') TIMESTAMP BY ts",
            SqlError,
            says,
        )
        for type_, format_, says in (
            ("INTERVAL ▸SECOND TO DAY", "json", "the longer one first"),
            ("INTERVAL ▸DAY TO MONTH", "parquet", "YEAR TO MONTH"),
            ("▸TIME(9)", "parquet", "write TIME(6)"),
            ("STRING COLLATE ▸UNICODECI", "parquet", "did you mean 'UNICODE_CI'"),
            ("TIMESTAMP▸(3)", "json", "leave it out"),
            ("TIMESTAMP ▸WITH TIME ZONE", "json", "TIMESTAMP_NTZ"),
            ("BIGINT▸[]", "json", "ARRAY<BIGINT>"),
            ("BIGINT ▸PRIMARY KEY", "json", "leave it out"),
            ("BIGINT ▸DEFAULT 0", "json", "coalesce"),
            ("▸UUID", "json", "use STRING"),
            ("VOID", "▸csv", "leave it out"),
            ("VOID", "▸orc", "leave it out"),
            ("INTERVAL", "▸json", "INTERVAL DAY TO SECOND"),
            ("MAP<INT, INT>", "▸json", "MAP<STRING, ...>"),
            ("ARRAY<MAP<DATE, INT>>", "▸json", "MAP<STRING, ...>"),
            ("STRUCT<a: INT, b: STRUCT<a: INT, A: INT>>", "▸parquet", "two fields are called 'A'"),
        )
    ),
    *(
        (
            f"CREATE STREAM s (ts TIMESTAMP, `{name}` INT) USING ▸json OPTIONS (path 'in') TIMESTAMP BY ts",
            SqlError,
            "name",
        )
        for name in ("#tau", "#bits", "#bits1", "#k bigint x", "#i", "#until")
    ),
    ("▸SET spark.sql.shufle.partitions = 3", OptionError, "did you mean 'spark.sql.shuffle.partitions'"),
    ("▸SET spark.sql.Shuffle.Partitions = 3", OptionError, "did you mean 'spark.sql.shuffle.partitions'"),
    ("▸SET spark.executor.memori = '2g'", OptionError, "did you mean 'spark.executor.memory'"),
    ("▸SET spark.sql.adaptive.enable = true", OptionError, "did you mean 'spark.sql.adaptive.enabled'"),
    ("▸SET spark.sql.adaptive.enabled = 'maybe'", OptionError, "expected true or false"),
    ("▸SET spark.sql.shuffle.partitions = 'many'", OptionError, "expected a number"),
    ("SET plait.routing =▸", SqlError, "expected a value"),
)

QUERIES: tuple[tuple[str, type[PlacedError], str], ...] = (
    # names
    ("SELECT ▸nope FROM o", SqlError, "there is no column 'nope'"),
    ("SELECT ▸o.idd FROM o", SqlError, "did you mean 'id'"),
    ("SELECT ▸x.id FROM o", SqlError, "there is no relation or column 'x'"),
    ("SELECT ▸o.id FROM o AS t", SqlError, "is called 't' in this query; write t.id"),
    ("SELECT ▸k FROM o JOIN l ON o.id = l.oid", SqlError, "could be o.k or l.k"),
    ("SELECT ▸o.addr.cty FROM o", SqlError, "did you mean 'City'"),
    ("SELECT ▸o.id.x FROM o", SqlError, "no fields"),
    ("SELECT o.id FROM ▸ordes o", SqlError, "there is no stream or table 'ordes'"),
    ("SELECT o.id FROM db▸.o", SqlError, "one part only"),
    ("SELECT 1 FROM o, ▸o", SqlError, "give one another alias: o AS o2"),
    ("SELECT 1 FROM o JOIN l ON ▸x.id = l.oid JOIN o x ON x.id = o.id", SqlError, "there is no relation"),
    ("SELECT 1 FROM o JOIN l USING (▸id)", SqlError, "missing in 'l'"),
    ("SELECT ▸q.* FROM o", SqlError, "there is no relation 'q'"),
    # syntax
    ("SELECT o.id▸, FROM o", SqlError, "remove the superfluous comma"),
    ("SELECT ▸FROM o", SqlError, "the SELECT list is empty"),
    ("SELECT o.id▸", SqlError, "has no FROM"),
    ("SELECT o.id FROM o WHERE▸", SqlError, "expected a condition"),
    ("SELECT o.id FROM o WHERE ▸(o.id = 1", SqlError, "never closed"),
    ("SELECT o.id FROM o WHERE o.id = 1▸)", SqlError, "closes nothing"),
    ("SELECT ▸CASE WHEN flag THEN 1 FROM o", SqlError, "add END"),
    ("SELECT o.id FROM o WHERE o.id ▸=", SqlError, "something is missing"),
    ("SELECT o.id FROM o WHERE o.id = 1 ▸AND", SqlError, "something is missing"),
    ("SELECT o.id x ▸y FROM o", SqlError, "cannot read the expression at 'y'"),
    ("SELECT o.id AS ▸'x' FROM o", SqlError, "expected one name after AS"),
    ("SELECT o.id FROM o WHERE ▸größe = 1", SqlError, "must stand in backquotes"),
    ("SELECT o.id FROM o ▸ON o.id = 1", SqlError, "does not fit here"),
    ("SELECT o.id FROM o; ▸SELECT 1", SqlError, "expected CREATE STREAM"),
    # words of other systems
    ("SELECT 1 FROM o JOIN l ▸WITHIN 1 MINUTE ON o.id = l.oid", UnsupportedQueryError, "WINDOW (a INTERVAL 1 MINUTE"),
    ("SELECT 1 FROM o JOIN l ON o.id = l.oid ▸WITHIN 5 MINUTES", UnsupportedQueryError, "WINDOW (a INTERVAL 1 MINUTE"),
    ("SELECT 1 FROM o ▸ASOF JOIN l ON o.id = l.oid", UnsupportedQueryError, "take the latest"),
    ("SELECT 1 FROM o x ▸ASOF LEFT JOIN l ON x.id = l.oid", UnsupportedQueryError, "take the latest"),
    ("SELECT ▸TOP 5 * FROM o", UnsupportedQueryError, "limit where the results are read"),
    ("SELECT ▸STREAM * FROM o", UnsupportedQueryError, "leave STREAM out"),
    ("SELECT ▸STREAM o.id FROM o", UnsupportedQueryError, "leave STREAM out"),
    ("SELECT 1 FROM o JOIN n ON o.k = n.code AND ▸o.city RLIKE n.k", UnsupportedQueryError, "RLIKE differs"),
    ("SELECT 1 FROM o JOIN n ON (city LIKE n.k AND ▸array_contains(tags, code))", UnsupportedQueryError, "one rel"),
    ("SELECT 1 FROM o JOIN n ON ▸o.city BETWEEN n.code AND n.k", UnsupportedQueryError, "between string and int"),
    ("SELECT 1 FROM o JOIN l ON ▸(o.id, o.ts) < (l.oid, l.ts)", UnsupportedQueryError, "a.x < b.x OR (a.x = b.x"),
    ("SELECT 1 FROM o JOIN l ON o.id = 1 OR ▸(o.id, 1) >= (l.oid, 2)", UnsupportedQueryError, "a.x < b.x OR"),
    ("SELECT 1 FROM o JOIN l ON NOT ▸(o.id, 1) <> (l.oid, 2, 3)", SqlError, "a row of 2 cannot equal a row of 3"),
    ("SELECT 1 FROM o JOIN l x ▸WITHIN (1 HOUR, 2 HOURS) ON o.id = x.oid", UnsupportedQueryError, "CREATE STREAM"),
    ("SELECT 1 FROM o JOIN l ▸GRACE PERIOD 1 HOUR ON o.id = l.oid", UnsupportedQueryError, "DELAY INTERVAL"),
    ("SELECT id FROM o ▸EMIT CHANGES", UnsupportedQueryError, "leave it out"),
    ("SELECT id FROM o WHERE id = 1 ▸EMIT FINAL", UnsupportedQueryError, "leave it out"),
    ("SELECT id FROM ▸TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' MINUTE))", UnsupportedQueryError, "DIV 10"),
    ("SELECT id FROM ▸HOP(o, ts, 1, 2)", UnsupportedQueryError, "DIV 10"),
    ("SELECT 1 FROM o JOIN l ▸FOR SYSTEM_TIME AS OF o.ts ON o.id = l.oid", UnsupportedQueryError, "WINDOW allows"),
    ("SELECT id FROM o ▸WINDOW TUMBLING (SIZE 1 HOUR)", UnsupportedQueryError, "not grouped into windows"),
    ("SELECT 1 FROM o JOIN l ON ▸window(o.ts, '1 second') = l.ts", UnsupportedQueryError, "unix_seconds(a.ts) DIV"),
    ("SELECT ▸safe_cast(id AS INT) FROM o", SqlError, "write try_cast(x AS type)"),
    # functions, types and conditions
    ("SELECT ▸lenght(city) FROM o", SqlError, "did you mean 'length'"),
    ("SELECT o.id FROM o JOIN l ON o.id = l.oid AND ▸similar_to(o.city, 'x')", SqlError, "Spark has none of this name"),
    ("SELECT CAST(id AS ▸TEXT) FROM o", SqlError, "use STRING"),
    ("SELECT city::▸uuid FROM o", SqlError, "not a type of Spark"),
    ("SELECT CAST(id AS ▸VOID) FROM o", SqlError, "write NULL"),
    ("SELECT CAST(id AS DECIMAL(10,2) ▸UNSIGNED) FROM o", SqlError, "expected ')'"),
    ("SELECT id FROM o WHERE ▸city", SqlError, "has type string, where a condition must be true or false"),
    ("SELECT id FROM o WHERE id > 1 AND (▸k + 1)", SqlError, "has type int"),
    ("SELECT 1 FROM o JOIN l ON o.id = l.oid WHERE ▸o.id + l.k", SqlError, "has type bigint"),
    ("SELECT id FROM o WHERE ▸upper(city)", SqlError, "has type string"),
    ("SELECT 1 FROM o JOIN l ON ▸(o.id, o.k) = (l.oid, l.k, 1)", SqlError, "a row of 2 cannot equal a row of 3"),
    ("SELECT 1 FROM o JOIN l ON (o.id, ▸o.flag) = (l.oid, l.k)", SqlError, "cannot compare o.flag (boolean)"),
    (
        "SELECT 1 FROM o JOIN n ON ▸lower(CAST(o.city AS STRING COLLATE UNICODE_CI)) = n.k",
        SqlError,
        "(CAST(x AS STRING))",
    ),
    (
        "SELECT 1 FROM o JOIN n ON o.k = n.code AND ▸upper(CAST(o.city AS STRING COLLATE UNICODE)) <> n.k",
        UnsupportedQueryError,
        "lower(CAST(x AS STRING))",
    ),
    (
        "SELECT 1 FROM o JOIN n ON ▸CAST(o.city AS STRING COLLATE UNICODE_CI) = n.k",
        SqlError,
        "lower(CAST(x AS STRING))",
    ),
    ("SELECT 1 FROM o JOIN l ON ▸o.flag = l.oid + 1", SqlError, "cannot compare o.flag (boolean) with l.oid + 1"),
    # joins that Plait does not run
    ("SELECT 1 FROM o, ▸l", SqlError, "nothing joins 'o' with 'l'"),
    ("SELECT 1 FROM l ▸LEFT JOIN o ON o.id = l.oid", UnsupportedQueryError, "WINDOW (l INTERVAL 1 HOUR)"),
    ("SELECT 1 FROM o ▸FULL OUTER JOIN l ON o.id = l.oid", UnsupportedQueryError, "WINDOW (l INTERVAL 1 HOUR)"),
    ("SELECT 1 FROM o ▸RIGHT JOIN n ON o.k = n.code", UnsupportedQueryError, "a table never closes"),
    ("SELECT 1 FROM o ▸FULL JOIN n ON o.k = n.code", UnsupportedQueryError, "a table never closes"),
    ("SELECT 1 FROM n ▸LEFT JOIN o ON o.k = n.code", UnsupportedQueryError, "put stream 'o' first"),
    ("SELECT 1 FROM n ▸SEMI JOIN o ON o.k = n.code", UnsupportedQueryError, "put stream 'o' first"),
    ("SELECT 1 FROM o ▸FULL SEMI JOIN l ON o.id = l.oid", SqlError, "there is no FULL SEMI JOIN"),
    ("SELECT 1 FROM o, ▸o p LEFT JOIN n ON o.k = n.code WHERE o.id = p.id", UnsupportedQueryError, "instead of ','"),
    (
        "SELECT 1 FROM o FULL JOIN o p USING (id) LEFT JOIN o q USING (▸id)",
        UnsupportedQueryError,
        "merged of o.id and p.id",
    ),
    ("SELECT ▸n.code FROM o LEFT ANTI JOIN n ON o.k = n.code", SqlError, "no relation or column 'n'"),
    ("SELECT 1 FROM o LEFT JOIN n ON o.k = n.code WHERE ▸hash(n.k) = 1", UnsupportedQueryError, "true of NULLs"),
    (
        "SELECT 1 FROM o LEFT JOIN n ON o.k = n.code WHERE ▸coalesce(n.code, 0) < o.k",
        UnsupportedQueryError,
        "not NULL then",
    ),
    (
        "SELECT count(*) FROM o LEFT JOIN o p ON o.id = p.id ▸GROUP BY window(p.ts, '1 hour')",
        UnsupportedQueryError,
        "take the time of the first relation",
    ),
    *(
        (f"SELECT ▸{call} AS v FROM o GROUP BY window(o.ts, '1 hour')", UnsupportedQueryError, "first(x, true)")
        for call in ("first(o.k) IGNORE NULLS", "last(o.k) RESPECT NULLS", "first(o.k, 1 = 1)", "first(o.k, NOT true)")
    ),
    ("SELECT 1 FROM o WHERE o.k ▸NOT IN (SELECT code FROM n)", UnsupportedQueryError, "o.k IS NOT NULL to WHERE"),
    (
        "SELECT 1 FROM o WHERE o.k IS NOT NULL AND o.k ▸NOT IN (SELECT code FROM n)",
        UnsupportedQueryError,
        "code IS NOT NULL to its WHERE",
    ),
    (
        "SELECT 1 FROM o WHERE nullif(o.k, 'A') IS NOT NULL AND "
        "nullif(o.k, 'a') ▸NOT IN (SELECT code FROM n WHERE code IS NOT NULL)",
        UnsupportedQueryError,
        "to WHERE",
    ),
    ("SELECT 1 FROM o WHERE o.k IN (SELECT ▸code, k FROM n)", SqlError, "one column"),
    ("SELECT 1 FROM o WHERE EXISTS (SELECT ▸count(*) FROM n WHERE code = o.k)", UnsupportedQueryError, "count()"),
    ("SELECT 1 FROM o WHERE EXISTS (SELECT ▸missing AS m FROM n WHERE code = o.k)", SqlError, "no column 'missing'"),
    (
        "SELECT 1 FROM o WHERE EXISTS (SELECT 1 FROM n WHERE code = o.k ▸GROUP BY code HAVING count(*) > 5)",
        UnsupportedQueryError,
        "GROUP BY in a subquery",
    ),
    (
        "SELECT 1 FROM o LEFT JOIN n ON o.k = n.code WHERE ▸5 NOT BETWEEN 6 AND n.code",
        UnsupportedQueryError,
        "true of NULLs",
    ),
    ("SELECT 1 FROM o WHERE EXISTS (SELECT 1 FROM n, ▸l WHERE 1 = 1)", UnsupportedQueryError, "EXISTS for each"),
    ("SELECT 1 FROM o WHERE o.k = 1 OR EXISTS (▸SELECT 1 FROM n)", UnsupportedQueryError, "a subquery"),
    ("SELECT EXISTS (▸SELECT 1 FROM n) FROM o", UnsupportedQueryError, "a subquery"),
    ("SELECT 1 FROM o WHERE EXISTS (SELECT 1 FROM ▸n WHERE n.code > 1)", SqlError, "nothing joins 'o' with 'n'"),
    ("SELECT 1 FROM o, ▸LATERAL explode(tags)", UnsupportedQueryError, "LATERAL"),
    ("SELECT 1 FROM o ▸LATERAL VIEW explode(tags) AS x", UnsupportedQueryError, "flatten"),
    ("SELECT 1 FROM o, l JOIN n ON ▸o.id + l.oid = n.code", UnsupportedQueryError, "needs 'o', 'l' and 'n'"),
    ("SELECT 1 FROM o JOIN l ON ▸extract(HOUR FROM o.ts - l.ts) = 1", UnsupportedQueryError, "from two relations"),
    ("SELECT 1 FROM o JOIN l ON o.id = 1 AND (▸(o.k, l.k) IN (o.tags))", UnsupportedQueryError, "engine.predicate"),
    ("SELECT 1 FROM o JOIN l ON ▸o.flag = l.oid", SqlError, "cannot compare o.flag (boolean) with l.oid (bigint)"),
    ("SELECT 1 FROM o JOIN l ON ▸o.d = l.oid", SqlError, "cast one of them"),
    ("SELECT 1 FROM o JOIN n ON ▸o.tags = n.k", SqlError, "cannot be a join key"),
    ("SELECT 1 FROM ▸n", UnsupportedQueryError, "tables alone"),
    ("SELECT 1 FROM ▸range(5)", UnsupportedQueryError, "table function"),
    # the rest of SQL that Plait does not run
    ("▸SELECT DISTINCT id FROM o", UnsupportedQueryError, "SELECT DISTINCT window(o.ts, '10 minutes') AS w"),
    ("SELECT id FROM o ▸GROUP BY id", UnsupportedQueryError, "GROUP BY window(o.ts, '10 minutes')"),
    ("SELECT count(*) FROM o ▸GROUP BY k, id", UnsupportedQueryError, "a group would never be complete"),
    ("SELECT id FROM o ▸HAVING id > 1", UnsupportedQueryError, "HAVING without GROUP BY"),
    ("SELECT count(*) FROM o GROUP BY window(▸k, '1 day')", UnsupportedQueryError, "write window(o.ts, ...)"),
    ("SELECT count(*) FROM o GROUP BY window(▸date_trunc('DAY', ts), '1 day')", UnsupportedQueryError, "(o.ts, ...)"),
    ("SELECT 1 FROM o, n WHERE city = n.k GROUP BY window(▸n.code, '1 day')", UnsupportedQueryError, "of a stream"),
    ("SELECT count(*) FROM o GROUP BY ▸window(ts)", SqlError, "and a length"),
    ("SELECT count(*) FROM o GROUP BY window(ts, ▸10)", SqlError, "are texts"),
    ("SELECT count(*) FROM o GROUP BY window(ts, ▸'1 month')", SqlError, "no fixed length"),
    ("SELECT count(*) FROM o GROUP BY window(ts, ▸'unbounded')", SqlError, "must end"),
    ("SELECT count(*) FROM o GROUP BY window(ts, ▸'0 seconds')", SqlError, "longer than zero"),
    ("SELECT count(*) FROM o GROUP BY window(ts, '1 minute', ▸'2 minutes')", SqlError, "leave rows out"),
    ("SELECT count(*) FROM o GROUP BY window(ts, '9 hours', '3 hours', ▸'3 hours')", SqlError, "less than one slide"),
    ("SELECT window(ts, '1 hour').end FROM o GROUP BY ▸window(ts, '1 day')", UnsupportedQueryError, "two windows"),
    ("SELECT ▸id FROM o GROUP BY window(ts, '1 day')", SqlError, "'o.id' is neither grouped by nor in an aggregate"),
    ("SELECT max(k) + ▸id FROM o GROUP BY window(ts, '1 day'), k", SqlError, "such as max(o.id)"),
    ("SELECT ▸* FROM o GROUP BY window(ts, '1 day')", UnsupportedQueryError, "list the groups and aggregates"),
    ("SELECT k FROM o GROUP BY window(ts, '1 day'), ▸4", SqlError, "has 1 items"),
    ("SELECT k FROM o GROUP BY window(ts, '1 day'), ▸kk", SqlError, "no column 'kk'"),
    ("SELECT ▸mode(k) FROM o GROUP BY window(ts, '1 day')", UnsupportedQueryError, "depends on the order of rows"),
    ("SELECT ▸collect_list(DISTINCT k) FROM o GROUP BY window(ts, '1 day')", UnsupportedQueryError, "collect_set(x)"),
    ("SELECT 1 FROM o GROUP BY ▸session_window(ts)", SqlError, "and a gap"),
    ("SELECT 1 FROM o GROUP BY session_window(▸k, '1 day')", UnsupportedQueryError, "write session_window(o.ts, ...)"),
    ("SELECT 1 FROM o GROUP BY session_window(ts, ▸IF(k > 1, '1 day', '2 days'))", UnsupportedQueryError, "computed"),
    ("SELECT 1 FROM o GROUP BY session_window(ts, ▸'0 days')", SqlError, "longer than zero"),
    ("SELECT 1 FROM o ▸GROUP BY session_window(ts, '1 day').end", UnsupportedQueryError, "without a window of time"),
    (
        "SELECT 1 FROM o GROUP BY session_window(ts, '1 day'), ▸session_window(ts, '1 day').end",
        UnsupportedQueryError,
        "computed of a session",
    ),
    ("SELECT 1 FROM o GROUP BY session_window(ts, '1 day'), ▸ROLLUP(k)", UnsupportedQueryError, "sessions of its own"),
    ("▸SELECT DISTINCT session_window(ts, '1 day') AS w FROM o", UnsupportedQueryError, "GROUP BY session_window"),
    ("SELECT window(ts, '1 day') FROM o GROUP BY ▸session_window(ts, '1 day')", UnsupportedQueryError, "two windows"),
    ("SELECT ▸session_window(ts, '1 day') FROM o", UnsupportedQueryError, "where nothing is grouped by it"),
    ("SELECT 1 FROM o GROUP BY ▸window_time(ts)", UnsupportedQueryError, "group by window(o.ts"),
    ("SELECT 1 FROM o GROUP BY window(ts, '1 day'), ▸CUBE()", SqlError, "CUBE (a, b)"),
    ("SELECT 1 FROM o ▸GROUP BY CUBE(window(ts, '1 day'), k)", UnsupportedQueryError, "without a window of time"),
    ("SELECT 1 FROM o GROUP BY window(ts, '1 day'), GROUPING SETS ((k, ▸nope), ())", SqlError, "no column 'nope'"),
    ("SELECT 1 FROM o GROUP BY ▸ALL", UnsupportedQueryError, "list what to group by"),
    ("SELECT DISTINCT k FROM o ▸GROUP BY window(ts, '1 day'), k", UnsupportedQueryError, "DISTINCT beside GROUP BY"),
    (
        "SELECT count(*) FROM l JOIN o ON l.oid = o.id GROUP BY window(▸l.ts, '1 day')",
        UnsupportedQueryError,
        "WINDOW (l INTERVAL 10 MINUTES)",
    ),
    ("SELECT k FROM o WHERE ▸count(*) > 1 GROUP BY window(ts, '1 day'), k", UnsupportedQueryError, "in HAVING"),
    ("SELECT id FROM o ▸ORDER BY id", UnsupportedQueryError, "sort where"),
    ("SELECT id FROM o ▸LIMIT 5", UnsupportedQueryError, "LIMIT"),
    ("SELECT id FROM o ▸UNION ALL SELECT oid FROM l", UnsupportedQueryError, "one CREATE QUERY for each SELECT"),
    ("SELECT id FROM o ▸TABLESAMPLE (5 ROWS)", UnsupportedQueryError, "by a condition"),
    ("WITH x AS (SELECT 1▸) SELECT 1 FROM o", SqlError, "has no FROM"),
    ("WITH ▸RECURSIVE x AS (SELECT id FROM o) SELECT id FROM x", UnsupportedQueryError, "with itself"),
    ("WITH x ▸(a) AS (SELECT id FROM o) SELECT a FROM x", SqlError, "in the SELECT list"),
    ("WITH x AS (SELECT id FROM o), ▸X AS (SELECT id FROM o) SELECT id FROM x", SqlError, "twice"),
    ("SELECT id FROM ▸(o JOIN l)", UnsupportedQueryError, "parentheses in FROM"),
    ("SELECT s.id FROM (SELECT id, ▸nope FROM o) s", SqlError, "'nope'"),
    ("SELECT ▸s.nope FROM (SELECT id FROM o) s", SqlError, "no column 'nope'"),
    ("SELECT (▸SELECT 1) AS x FROM o", UnsupportedQueryError, "make it a view"),
    ("SELECT id FROM o WHERE (▸SELECT oid FROM l) > id", UnsupportedQueryError, "make it a view"),
    ("SELECT id FROM o WHERE id > (▸SELECT oid FROM l)", UnsupportedQueryError, "make it a view"),
    ("SELECT ▸count(*) FROM o", UnsupportedQueryError, "aggregate function count()"),
    ("SELECT ▸window(ts, '1 second') FROM o", UnsupportedQueryError, "GROUP BY window(o.ts, '10 minutes')"),
    ("SELECT ▸row_number() OVER (ORDER BY id) FROM o", UnsupportedQueryError, "window function row_number()"),
    ("SELECT ▸explode(tags) FROM o", UnsupportedQueryError, "flatten rows"),
    ("SELECT id FROM o WHERE ▸rand() < 0.5", UnsupportedQueryError, "use a column"),
    ("SELECT ▸uuid() FROM o", UnsupportedQueryError, "changes from run to run"),
    ("SELECT id FROM o WHERE ts > ▸current_timestamp", UnsupportedQueryError, "use the time column"),
    ("SELECT id FROM o WHERE ts > ▸now()", UnsupportedQueryError, "use the time column"),
    ("SELECT id FROM o WHERE id = ▸:x", UnsupportedQueryError, "write the value"),
    ("SELECT struct(▸*) FROM o", UnsupportedQueryError, "list the columns"),
)


@pytest.fixture
def base(tmp_path: Path) -> str:
    for directory in ("in", "empty"):
        (tmp_path / directory).mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but not for long")
    return str(tmp_path)


def caught(marked: str, base: str) -> tuple[PlacedError, tuple[int, int]]:
    """Check a script and return its one mistake and the place of the mark."""
    before = marked[: marked.index("▸")]
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    text = marked.replace("▸", "")
    first, *_ = check_script(text, file="script.sql", base=base)
    with pytest.raises(type(first)) as raised:
        load_script(text, file="script.sql", base=base)
    assert str(raised.value) == str(first)
    return first, place


@pytest.mark.parametrize(("marked", "kind", "says"), STATEMENTS)
def test_a_wrong_statement_is_told_where_and_what_to_change(
    marked: str, kind: type[PlacedError], says: str, base: str
) -> None:
    text = f"{SOURCES}CREATE QUERY a INTO memory AS SELECT o.id FROM o;\n  {marked}"
    problem, place = caught(text, base)
    assert (type(problem), problem.file, problem.line, problem.column) == (kind, "script.sql", *place), problem
    assert says in problem.message


@pytest.mark.parametrize(("marked", "kind", "says"), QUERIES)
def test_a_wrong_query_is_told_where_and_what_to_change(
    marked: str, kind: type[PlacedError], says: str, base: str
) -> None:
    problem, place = caught(f"{SOURCES}\nCREATE QUERY q INTO noop AS\n  {marked}", base)
    assert (type(problem), problem.file, problem.line, problem.column) == (kind, "script.sql", *place), problem
    assert says in problem.message


@pytest.mark.parametrize("time", ["timestamp_millis(ms)", "head.at"])
def test_windows_of_a_computed_time_are_refused_for_that(time: str, base: str) -> None:
    columns = f"ms BIGINT, head STRUCT<at: TIMESTAMP>) USING json OPTIONS (path 'in') TIMESTAMP BY {time}"
    query = f"CREATE QUERY q INTO noop AS SELECT count(*) FROM c GROUP BY window(▸{time}, '1 hour')"
    problem, place = caught(f"CREATE STREAM c ({columns};\n{query}", base)
    assert (type(problem), problem.line, problem.column) == (UnsupportedQueryError, *place), problem
    assert f"the time of 'c' is computed (TIMESTAMP BY {time})" in problem.message


def test_the_sources_of_these_scripts_are_right(base: str) -> None:
    assert check_script(SOURCES, base=base) == ()
