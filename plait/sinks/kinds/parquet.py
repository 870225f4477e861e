"""Parquet files. Results that need no further evaluation are written by the probe tasks themselves."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from plait.faults import reach
from plait.query.model import SinkSpec
from plait.sinks.delivery import Delivery, Direct, Projection
from plait.sinks.files import FileSink
from plait.sinks.staging import Publication, stage


class Parquet(FileSink):
    """A directory of Parquet files."""

    name = "parquet"

    def delivery(self, spec: SinkSpec, projection: Projection) -> Delivery:
        """Let tasks write the files, unless an expression or an option takes Spark."""
        if projection.picked is None or {name for name, _ in spec.options} != {"path"}:
            return super().delivery(spec, projection)
        files = ParquetFiles(directory=self.directory(spec), schema=projection.schema)
        return Direct(query=projection.query, columns=projection.picked, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFiles:
    """Opens one task's files. `schema`: as Spark would write it."""

    directory: str
    schema: pa.Schema

    def open(self, name: str) -> ParquetFile:
        """Open a hidden file that will be published in the directory."""
        return ParquetFile(self, name)


class ParquetFile:
    """A file under way."""

    def __init__(self, files: ParquetFiles, name: str) -> None:
        self._schema = files.schema
        self._staged = stage(files.directory, f"{name}.parquet")
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
