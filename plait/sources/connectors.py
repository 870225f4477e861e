"""Connectors that Spark does not bring along: which formats need one, and the jars it consists of.

Each jar is named with the digest of its content, so that whatever a repository, a mirror or a cache hands over is what
was tried with this Spark. What these jars ask for besides (Hadoop, Scala, SLF4J, Jackson) Spark has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from plait.spelling import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """A jar of a Maven repository, and the SHA-256 of its content."""

    group: str
    artifact: str
    version: str
    digest: str

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        """What Maven and Spark call it."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def path(self) -> str:
        """Where it is in a repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The connector of a format: its jars, the first of which tells whether a Spark has it already, and the settings of
    Spark that it asks for.
    """

    name: str
    jars: tuple[Jar, ...]
    settings: tuple[tuple[str, str], ...] = ()


SPARK: Final = "4.2.0"
"""The version of Spark that these are for."""


def _of_spark(artifact: str, digest: str) -> Jar:
    return Jar(group="org.apache.spark", artifact=f"{artifact}_2.13", version=SPARK, digest=digest)


_ALL: Final = (
    Package(
        name="kafka",
        jars=(
            _of_spark("spark-sql-kafka-0-10", "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705"),
            _of_spark(
                "spark-token-provider-kafka-0-10", "641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c"
            ),
            Jar(
                group="org.apache.kafka",
                artifact="kafka-clients",
                version="3.9.2",
                digest="014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
            ),
            Jar(
                group="org.apache.commons",
                artifact="commons-pool2",
                version="2.13.1",
                digest="f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
            ),
        ),
    ),
    Package(
        name="avro",
        jars=(_of_spark("spark-avro", "4c186cedc03cbe4ee356a94b32232b347ef48611c3209400b3a77e4fe4abff4f"),),
    ),
    Package(
        name="delta",
        jars=(
            Jar(
                group="io.delta",
                artifact="delta-spark_2.13",
                version="4.4.0",
                digest="27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
            ),
            Jar(
                group="io.delta",
                artifact="delta-storage",
                version="4.4.0",
                digest="c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
            ),
            Jar(
                group="io.delta",
                artifact="delta-kernel-api",
                version="4.4.0",
                digest="ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
            ),
            Jar(
                group="io.delta",
                artifact="delta-kernel-defaults",
                version="4.4.0",
                digest="225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
            ),
            Jar(
                group="io.delta",
                artifact="delta-kernel-unitycatalog",
                version="4.4.0",
                digest="cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
            ),
            Jar(
                group="io.unitycatalog",
                artifact="unitycatalog-client",
                version="0.6.0",
                digest="48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
            ),
            Jar(
                group="io.unitycatalog",
                artifact="unitycatalog-hadoop",
                version="0.6.0",
                digest="c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
            ),
        ),
        settings=(
            ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"),
            ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
            # By itself it reads the log of a table, with every batch, in 50 tasks.
            ("spark.databricks.delta.snapshotPartitions", "2"),
        ),
    ),
    Package(
        name="postgresql",
        jars=(
            Jar(
                group="org.postgresql",
                artifact="postgresql",
                version="42.7.14",
                digest="73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
            ),
        ),
    ),
)

PACKAGES: Final[Mapping[str, Package]] = MappingProxyType({package.name: package for package in _ALL})
"""By the format, or the database, that needs it."""


def packages_for(formats: Iterable[str]) -> tuple[Package, ...]:
    """Return the connectors that these formats need, each once."""
    asked = {folded(format_) for format_ in formats}
    return tuple(package for name, package in PACKAGES.items() if name in asked)


__all__ = ["PACKAGES", "SPARK", "Jar", "Package", "packages_for"]
