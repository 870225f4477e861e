"""What the kernels must compute, as plain loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_MASK = 2**64 - 1


def xxhash64(value: int, seed: int = 42) -> int:
    """XXH64 of one 64-bit value, from the specification."""
    primes = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)

    def rotate(word: int, bits: int) -> int:
        return ((word << bits) | (word >> (64 - bits))) & _MASK

    lane = (rotate(value % 2**64 * primes[1] & _MASK, 31) * primes[0]) & _MASK
    state = (rotate((seed + primes[4] + 8 & _MASK) ^ lane, 27) * primes[0] + primes[3]) & _MASK
    state = ((state ^ state >> 33) * primes[1]) & _MASK
    state = ((state ^ state >> 29) * primes[2]) & _MASK
    state ^= state >> 32
    return state - 2**64 if state >= 2**63 else state


def sort_order(key: Sequence[int], tau: Sequence[int] | None) -> list[int]:
    """Row numbers by (key, τ, row number)."""
    return sorted(range(len(key)), key=lambda row: (key[row], 0 if tau is None else tau[row], row))


def matches(
    probes: Sequence[tuple[int, int | None, int | None]],
    rows: Sequence[tuple[int, int | None, int, int | None]],
    mask: int,
) -> Iterator[tuple[int, int]]:
    """Pairs (probe position, row number): probes are (key, low, high), rows are (key, τ, row number, bits)."""
    for at, (probe_key, low, high) in enumerate(probes):
        for key, tau, row, bits in rows:
            if key != probe_key:
                continue
            if tau is not None and ((low is not None and tau < low) or (high is not None and tau > high)):
                continue
            if bits is not None and not bits & mask:
                continue
            yield at, row
