"""Spark's ``xxhash64`` of one value, written down once more: XXH64 with seed 42 of the bytes that stand for it."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import xxhash


def of_bytes(value: bytes) -> int:
    hashed = xxhash.xxh64_intdigest(value, seed=42)
    return hashed - 2**64 if hashed >= 2**63 else hashed


def of_text(value: str) -> int:
    return of_bytes(value.encode())


def of_narrow(value: int) -> int:
    return of_bytes(struct.pack("<i", value))


def of_long(value: int) -> int:
    return of_bytes(struct.pack("<q", value))


def of_float(value: float) -> int:
    return of_bytes(b"\0\0\xc0\x7f" if math.isnan(value) else struct.pack("<f", value + 0.0))


def of_double(value: float) -> int:
    return of_bytes(b"\0\0\0\0\0\0\xf8\x7f" if math.isnan(value) else struct.pack("<d", value + 0.0))


def of_wide(unscaled: int) -> int:
    """Of a decimal of more than 18 digits: as BigInteger.toByteArray has it."""
    count = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return of_bytes(unscaled.to_bytes(count, "big", signed=True))


def of_decimal(value: Decimal, precision: int, scale: int) -> int:
    unscaled = int(value.scaleb(scale))
    return of_long(unscaled) if precision <= 18 else of_wide(unscaled)


FUNCTIONS: tuple[tuple[str, Callable[[Any], int], str], ...] = (
    ("hash_of_text", of_text, "VARCHAR"),
    ("hash_of_binary", of_bytes, "BLOB"),
    ("hash_of_narrow", of_narrow, "INTEGER"),
    ("hash_of_long", of_long, "BIGINT"),
    ("hash_of_float", of_float, "FLOAT"),
    ("hash_of_double", of_double, "DOUBLE"),
    ("hash_of_wide", lambda digits: of_wide(int(digits)), "VARCHAR"),
)
"""(name, function, type that it takes) of those that DuckDB is to call."""
