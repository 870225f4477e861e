"""Delta tables written without Spark: files of Parquet, and the commits that name them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_TYPES: Final = {
    "long": pa.int64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "integer": pa.int32(),
}
_IDENTITY: Final = "0d2f5c58-5f55-4b0e-a2ae-6d1c2c6f7e11"


class DeltaTable:
    """A table with columns of these types, by Delta's names for them."""

    def __init__(self, folder: Path, columns: Mapping[str, str]) -> None:
        self.folder, self._columns, self.version = folder, dict(columns), -1
        (folder / "_delta_log").mkdir(parents=True)
        self._commit([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, self._metadata()])

    def append(self, *rows: Mapping[str, Any], columns: Mapping[str, str] | None = None) -> str:
        """Add rows in one commit; return the name of their file. `columns`: those that the table has from now on."""
        more = []
        if columns is not None:
            self._columns = dict(columns)
            more = [self._metadata()]
        added = self._added(rows)
        self._commit([*more, {"add": added}])
        return str(added["path"])

    def rewrite(self, names: Sequence[str], *rows: Mapping[str, Any], data_change: bool = True) -> None:
        """Put other rows in the place of files, as an update does; without a change of data, as putting together."""
        gone = [{"remove": {"path": name, "dataChange": data_change, "deletionTimestamp": 1}} for name in names]
        self._commit([*gone, {"add": self._added(rows) | {"dataChange": data_change}}])

    def _added(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        schema = pa.schema([(name, _TYPES[type_]) for name, type_ in self._columns.items()])
        table = pa.Table.from_pylist([dict(row) for row in rows], schema)
        name = f"part-{self.version + 1:05}-{uuid.uuid4()}.snappy.parquet"
        pq.write_table(table, self.folder / name)
        size = (self.folder / name).stat().st_size
        bounds = {"numRecords": len(rows), "minValues": self._bound(rows, min), "maxValues": self._bound(rows, max)}
        return {
            "path": name,
            "partitionValues": {},
            "size": size,
            "modificationTime": 1767261600000 + self.version,
            "dataChange": True,
            "stats": json.dumps(bounds),
        }

    def _bound(self, rows: Sequence[Mapping[str, Any]], of: Any) -> dict[str, Any]:
        found = {}
        for name in self._columns:
            values = [row[name] for row in rows if row.get(name) is not None]
            if values:
                value = of(values)
                found[name] = value.strftime("%Y-%m-%dT%H:%M:%S.000Z") if isinstance(value, datetime) else value
        return found

    def _metadata(self) -> dict[str, Any]:
        fields = [
            {"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in self._columns.items()
        ]
        return {
            "metaData": {
                "id": _IDENTITY,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1767261600000,
            }
        }

    def _commit(self, actions: Sequence[Mapping[str, Any]]) -> None:
        self.version += 1
        told = {"commitInfo": {"timestamp": 1767261600000 + 1000 * self.version, "operation": "WRITE"}}
        lines = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in (told, *actions))
        (self.folder / "_delta_log" / f"{self.version:020}.json").write_text(lines)
