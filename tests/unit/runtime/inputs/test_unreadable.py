import pytest

from plait.runtime.batch.run_errors import explained
from plait.runtime.inputs.unreadable import unreadable

TOLD = (
    (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/1.csv.  SQLSTATE: KD001\n"
        "Caused by: java.lang.IllegalArgumentException: CSV header does not conform to the schema.\n"
        " Header: ts, id\n Schema: id, ts\nExpected: id but found: ts\nCSV file: file:///in/1%20a.csv\n\tat org",
        "the header of '/in/1 a.csv' is ts, id, the declared columns are id, ts: expected 'id', found 'ts'.",
    ),
    (
        "Caused by: java.lang.IllegalArgumentException: Number of column in CSV header is not equal to number of "
        "fields in the schema:\n Header length: 3, schema size: 2\nCSV file: file:///in/1.csv\n",
        "the header of '/in/1.csv' has 3 columns, expected the 2 declared ones.",
    ),
    (
        "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading file "
        "file:///in/1.parquet. Data type mismatches when reading Parquet column [ts]. Expected Spark type timestamp, "
        "actual Parquet type INT64. SQLSTATE: KD001",
        "column 'ts' of '/in/1.parquet' is INT64, expected something to read as timestamp. If it counts nanoseconds",
    ),
    (
        "Caused by: java.lang.RuntimeException: file:/in/1.csv is not a Parquet file. Expected magic number at tail",
        "'/in/1.csv' is no Parquet file.",
    ),
    ("[PATH_NOT_FOUND] Path does not exist: file:/in/no. SQLSTATE: 42K03", "the path '/in/no' does not exist."),
    ("exception: Option 'basePath' must be a directory SQLSTATE: XXKST", "a stream reads a directory."),
    (
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: iceberg. Make sure the provider name is correct",
        "this Spark has no data source 'iceberg'. Correct the name, or add the connector's package",
    ),
    (
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure the provider name is correct",
        "this Spark has no data source 'delta'. plait run brings the connector along",
    ),
    (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: [UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE] The CSV "
        'datasource doesn\'t support the column `id` of the type "ARRAY<INT>". SQLSTATE: 0A000 SQLSTATE: XXKST',
        "column 'id' has type array<int>, which csv cannot hold. Declare it as STRING",
    ),
    (
        "[DELTA_SOURCE_TABLE_IGNORE_CHANGES] Detected a data update (for example part-1.parquet) in the source table "
        "at version 7. This is currently not supported.",
        "rows of the Delta table were changed or deleted (version 7), and streams only gain rows.",
    ),
    (
        "[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected schema change in version 3:\nstreaming source schema: root",
        "the columns of the Delta table have changed while it was read",
    ),
    (
        "[DELTA_MISSING_FILES_UNEXPECTED_VERSION] Delta stream cannot resume from version 3;",
        "commits of the Delta table are gone that were not read yet",
    ),
    (
        "[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version 9. Available versions: [0, 3]. SQLSTATE",
        "the Delta table has no such version: Cannot time travel Delta table to version 9.",
    ),
    ("java.io.FileNotFoundException: /in/1.csv (Permission denied)", "no permission to read '/in/1.csv'."),
    (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/1.gz.  SQLSTATE: KD001\n\tat org\n"
        "Caused by: org.apache.X: outer\n\tat org\nCaused by: java.io.IOException: incorrect header check\n\tat",
        "the file '/in/1.gz' cannot be read: incorrect header check.",
    ),
)


@pytest.mark.parametrize(("text", "says"), TOLD)
def test_a_file_that_cannot_be_read_is_told_with_its_name_and_what_to_do(text: str, says: str) -> None:
    told = str(explained(RuntimeError(text)))
    assert says in told
    assert told.endswith("The checkpoint is intact: mend the cause and start again.")


def test_other_failures_are_no_matter_of_files() -> None:
    assert unreadable("[DIVIDE_BY_ZERO] Division by zero") is None
