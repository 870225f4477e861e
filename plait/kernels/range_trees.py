"""What ranges of an array come to, in logarithmic time each: sums of doubles, and smallest numbers.

A tree holds the values padded to a power of two, and above them what each two come to. Differences of prefix sums would
be shorter, but of doubles they are not the sum: what is large beside the range leaves nothing of it, and after one
NaN or infinity there is nothing else.
"""

from __future__ import annotations

import numpy as np

from plait.kernels.bands import LARGEST, Float64s
from plait.kernels.compiled import Int32s, Int64s, frozen, kernel


def sum_tree(values: Float64s) -> Float64s:
    """Return the tree of sums of float64[n].

    >>> sums_in(sum_tree(np.array([1.0, 2.0, 4.0])), np.array([0, 1]), np.array([3, 2])).tolist()
    [7.0, 2.0]
    """
    tree = np.zeros(2 * _leaves(len(values)))
    tree[len(tree) // 2 :][: len(values)] = values
    level = len(tree) // 2
    with np.errstate(over="ignore", invalid="ignore"):
        while level > 1:
            np.add(tree[level : 2 * level : 2], tree[level + 1 : 2 * level : 2], out=tree[level // 2 : level])
            level //= 2
    return tree


def least_tree(values: Int64s) -> Int64s:
    """Return the tree of smallest numbers of int64[n].

    >>> least_in(least_tree(np.array([3, 1, 2])), np.array([0, 2]), np.array([2, 3])).tolist()
    [1, 2]
    """
    tree = np.full(2 * _leaves(len(values)), LARGEST)
    tree[len(tree) // 2 :][: len(values)] = values
    level = len(tree) // 2
    while level > 1:
        np.minimum(tree[level : 2 * level : 2], tree[level + 1 : 2 * level : 2], out=tree[level // 2 : level])
        level //= 2
    return tree


def sums_in(tree: Float64s, begins: Int32s, ends: Int32s) -> Float64s:
    """Return the sum of each range [begin, end) of the values."""
    sums = np.empty(len(begins))
    _sums(frozen(tree, np.float64), frozen(begins, np.int32), frozen(ends, np.int32), sums)
    return sums


def least_in(tree: Int64s, begins: Int32s, ends: Int32s) -> Int64s:
    """Return the smallest number of each range [begin, end) of the values; the largest there is where it is empty."""
    least = np.empty(len(begins), np.int64)
    _least(frozen(tree, np.int64), frozen(begins, np.int32), frozen(ends, np.int32), least)
    return least


def _leaves(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


@kernel
def _sums(tree: Float64s, begins: Int32s, ends: Int32s, sums: Float64s) -> None:
    leaves = len(tree) // 2
    for place in range(len(begins)):
        left, right = leaves + np.int64(begins[place]), leaves + np.int64(ends[place])
        total = 0.0
        while left < right:
            if left & 1:
                total += tree[left]
                left += 1
            if right & 1:
                right -= 1
                total += tree[right]
            left >>= 1
            right >>= 1
        sums[place] = total


@kernel
def _least(tree: Int64s, begins: Int32s, ends: Int32s, least: Int64s) -> None:
    leaves = len(tree) // 2
    for place in range(len(begins)):
        left, right = leaves + np.int64(begins[place]), leaves + np.int64(ends[place])
        found = LARGEST
        while left < right:
            if left & 1:
                found = min(found, tree[left])
                left += 1
            if right & 1:
                right -= 1
                found = min(found, tree[right])
            left >>= 1
            right >>= 1
        least[place] = found


__all__ = ["LARGEST", "least_in", "least_tree", "sum_tree", "sums_in"]
