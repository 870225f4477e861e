"""Parquet files. Results that need no further evaluation are written by the probe tasks themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from plait.faults import reach
from plait.option_values import words
from plait.query.model import SinkSpec
from plait.sinks.claims import tag_of
from plait.sinks.delivery import Delivery, Direct, Projection
from plait.sinks.files import OPTIONS_OF_FILES, FileSink
from plait.sinks.options import accepting
from plait.sinks.staging import Publication, stage
from plait.sinks.storable import SparkType, is_same_in_arrow, parquet_problem
from plait.spelling import folded

_CODEC = words("none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd")


class Parquet(FileSink):
    """A directory of Parquet files."""

    name = "parquet"
    options = (*OPTIONS_OF_FILES, *accepting(_CODEC, "compression"))
    option_prefix = "parquet."

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse fields of one name, and types that no files hold."""
        return parquet_problem(type_)

    def wants_schema(self, types: Sequence[SparkType]) -> bool:
        """Want it where tasks can write with Arrow what Spark would write."""
        return all(map(is_same_in_arrow, types))

    def delivery(self, spec: SinkSpec, projection: Projection) -> Delivery:
        """Let tasks write the files, unless an expression, a type or an option takes Spark."""
        options = {folded(name) for name, _ in spec.options}
        if projection.made is None or projection.schema is None or not options <= {"path", "existing"}:
            return super().delivery(spec, projection)
        files = ParquetFiles(
            directory=self.directory(spec), tag=tag_of(projection.checkpoint), schema=projection.schema
        )
        return Direct(query=projection.query, columns=projection.joined, made=projection.made, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFiles:
    """Opens one task's files. `schema`: as Spark would write it; `tag`: of the checkpoint."""

    directory: str
    tag: str
    schema: pa.Schema

    def open(self, name: str) -> ParquetFile:
        """Open a hidden file that will be published in the directory."""
        return ParquetFile(self, name)


class ParquetFile:
    """A file under way."""

    def __init__(self, files: ParquetFiles, name: str) -> None:
        self._schema = files.schema
        self._staged = stage(files.directory, f"{name}-{files.tag}.parquet")
        self._writer = pq.ParquetWriter(
            self._staged.path, self._schema, filesystem=self._staged.filesystem, compression="snappy"
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows, cast to the schema."""
        arrays = [rows.column(i).cast(self._schema.field(i).type) for i in range(len(self._schema))]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def close(self) -> Publication:
        """Finish the file."""
        reach("stage")
        self._writer.close()
        return self._staged.publication
