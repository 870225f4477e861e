"""The queries of paper 004 (AJoin, section 7): chains of 2 to 5 streams, similar to a pattern query.

Ten streams ``s1`` to ``s10`` have six attributes each, uniform from 0 to 500. For each number of relations n there is
a pattern query, a chain over s1 to sn on attributes of its own. How similar a query is to it, the paper defines as
``ComS * ComSJA / AllS²``: the sources they have in common, times those of them with common join attributes, by the
square of the pattern's sources. A query of a wanted similarity is made in the paper's three steps:

1. ComS is drawn from 1 to AllS.
2. ComSJA follows from the definition. If so many of ComS sources cannot have common join attributes, ComS is raised.
3. ComS neighbours of the pattern are taken, and ComSJA of them join on the pattern's attributes.

Each relation has a selection (attribute, one of ``= > < >= <=``, value), the window is 1, 2 or 3 seconds between any
two members; all drawn uniformly.

What the paper leaves open is settled so:

- A source has common join attributes if all attributes it is joined on are those it is joined on in the pattern. So
  ComSJA is at most ComS and the similarity at most 1.
- ComSJA is seldom whole. It is rounded up or down at random, so that the mean is what is wanted.
- Sources that are not common come from the streams outside the pattern, at either end of the chain.
- Selections and window of a query are drawn again until it can be expected to have `FEWEST_RESULTS` results on the
  streams as they are described: an empty answer could not be told from a wrong one. As drawn in the paper, equality
  keeps one row in 501, so nine in ten queries of four or five relations would have no result.

The queries of a seed are one list, of which a workload of n queries is the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from random import Random

from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf
from plait.errors import OptionError
from plait.query.model import Column

ATTRIBUTES = 6
LARGEST_VALUE = 500
STREAM_COUNT = 10
WINDOWS_S = (1, 2, 3)
FEWEST_RESULTS = 20.0
SIZES = (2, 3, 4, 5)

_OPERATORS = ("=", ">", "<", ">=", "<=")
_VALUES = LARGEST_VALUE + 1
_MOST_DRAWS = 10_000
_PATTERN_SEED = 4

STREAMS: tuple[JoinStream, ...] = tuple(
    JoinStream(
        name=f"s{number}",
        time="ts",
        columns=(
            Column(name="ts", type="timestamp"),
            Column(name="nr", type="bigint"),
            *(Column(name=f"a{attribute}", type="bigint") for attribute in range(ATTRIBUTES)),
        ),
    )
    for number in range(1, STREAM_COUNT + 1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A source of a chain: the attributes on which it is joined with its neighbours, None at an end."""

    stream: str
    left: str | None = None
    right: str | None = None

    @property
    def attributes(self) -> frozenset[str]:
        """All attributes it is joined on."""
        return frozenset(name for name in (self.left, self.right) if name is not None)


Chain = tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A comparison of an attribute with a value."""

    attribute: str
    operator: str
    value: int

    @property
    def kept(self) -> range:
        """The values that pass."""
        below, up_to = range(self.value), range(self.value + 1)
        above, from_on = range(self.value + 1, _VALUES), range(self.value, _VALUES)
        equal = range(self.value, self.value + 1)
        return {"<": below, "<=": up_to, ">": above, ">=": from_on, "=": equal}[self.operator]

    def sql(self, stream: str) -> str:
        """The comparison as a condition on a stream."""
        return f"{stream}.{self.attribute} {self.operator} {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AjoinWanted:
    """The queries to draw. `sizes`: numbers of relations, one of them drawn for each query; `rows_per_s`: of each
    stream, and `span_s` how long, to foresee the number of results; `selections`: False for section 7.1 of the paper.
    """

    similarity: float = 0.5
    sizes: tuple[int, ...] = SIZES
    rows_per_s: float = 200.0
    span_s: float = 60.0
    selections: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.similarity <= 1:
            raise OptionError(f"expected a similarity above 0 and up to 1, found {self.similarity:g}")
        if not self.sizes or not set(self.sizes) <= set(SIZES):
            raise OptionError(f"expected joins of {SIZES[0]} to {SIZES[-1]} relations, found sizes {self.sizes}")


def pattern(size: int) -> Chain:
    """Return the pattern query of so many relations, the same for all seeds.

    >>> [(link.stream, link.left, link.right) for link in pattern(3)]
    [('s1', None, 'a2'), ('s2', 'a0', 'a3'), ('s3', 'a3', None)]
    """
    random = Random(_PATTERN_SEED)
    sides = [random.sample(range(ATTRIBUTES), 2) for _ in range(size)]
    return tuple(
        Link(
            stream=f"s{place + 1}",
            left=f"a{left}" if place > 0 else None,
            right=f"a{right}" if place < size - 1 else None,
        )
        for place, (left, right) in enumerate(sides)
    )


def similarity(chain: Chain, to: Chain) -> float:
    """Return how similar a query is to a pattern: equation 3 of the paper."""
    theirs = {link.stream: link.attributes for link in to}
    common = [link for link in chain if link.stream in theirs]
    same = [link for link in common if link.attributes <= theirs[link.stream]]
    return len(common) * len(same) / len(to) ** 2


def draw_chain(size: int, wanted: float, random: Random) -> Chain:
    """Return the joins of a query of `size` relations that is about so similar to the pattern of this size."""
    model = pattern(size)
    common = random.randint(1, size)
    while wanted * size**2 / common > common:
        common += 1
    exact = wanted * size**2 / common
    same = int(exact) + (random.random() < exact % 1)
    first = random.randint(0, size - common)
    shared = model[first : first + common]
    outside = random.sample([stream.name for stream in STREAMS[size:]], size - common)
    before = random.randint(0, len(outside))
    alike = {link.stream for link in random.sample(shared, same)}
    theirs = {link.stream: link for link in shared}
    streams = (*outside[:before], *(link.stream for link in shared), *outside[before:])
    return tuple(
        _link(stream, theirs.get(stream), stream in alike, place > 0, place < size - 1, random)
        for place, stream in enumerate(streams)
    )


def _link(stream: str, model: Link | None, is_alike: bool, has_left: bool, has_right: bool, random: Random) -> Link:
    """Return a source's place in a chain: on the attributes of the pattern, or on none of them."""
    known = frozenset() if model is None else model.attributes
    if model is not None and is_alike:
        (some, *_) = sorted(known)
        left, right = model.left or some, model.right or some
    else:
        free = [name for name in (f"a{attribute}" for attribute in range(ATTRIBUTES)) if name not in known]
        left, right = random.choice(free), random.choice(free)
    return Link(stream=stream, left=left if has_left else None, right=right if has_right else None)


def draw_queries(wanted: AjoinWanted, seed: int) -> Iterator[JoinQuery]:
    """Yield queries ``q1``, ``q2`` and so on without end. Raises OptionError if they would have no results."""
    random = Random(seed)
    number = 0
    while True:
        number += 1
        chain = draw_chain(random.choice(wanted.sizes), wanted.similarity, random)
        yield _query(f"q{number}", chain, wanted, random)


def _query(name: str, chain: Chain, wanted: AjoinWanted, random: Random) -> JoinQuery:
    for _ in range(_MOST_DRAWS):
        window_s = random.choice(WINDOWS_S)
        chosen = {link.stream: _draw_selection(random) for link in chain} if wanted.selections else {}
        if expected_results(wanted, chain, window_s, chosen) >= FEWEST_RESULTS:
            break
    else:
        raise OptionError(
            f"no selections of a join of {len(chain)} relations leave {FEWEST_RESULTS:g} results among "
            f"{wanted.rows_per_s:g} rows a second of each stream for {wanted.span_s:g} seconds; expected more rows"
        )
    return JoinQuery(
        name=name,
        relations=tuple(link.stream for link in chain),
        joins=tuple(
            Join(left=left.stream, right=right.stream, columns=((str(left.right), str(right.left)),))
            for left, right in pairwise(chain)
        ),
        outputs=tuple(
            OutputOf(relation=link.stream, column=column.name, type=column.type)
            for link in chain
            for column in STREAMS[0].columns
            if column.name in {"ts", "nr"} | link.attributes
        ),
        selections=tuple((stream, selection.sql(stream)) for stream, selection in chosen.items()),
        window_s=window_s,
    )


def _draw_selection(random: Random) -> Selection:
    return Selection(
        attribute=f"a{random.randrange(ATTRIBUTES)}",
        operator=random.choice(_OPERATORS),
        value=random.randint(0, LARGEST_VALUE),
    )


def expected_results(wanted: AjoinWanted, chain: Chain, window_s: float, chosen: Mapping[str, Selection]) -> float:
    """Return how many results a query can be expected to have.

    So many times one row is the oldest and the others come within the window after it: those are the combinations.
    Of them remain those that agree on all joined attributes, on a value that every selection on one of these keeps,
    and that pass the other selections.
    """
    size = len(chain)
    remaining = wanted.rows_per_s * wanted.span_s * size * (wanted.rows_per_s * window_s) ** (size - 1)
    left = dict(chosen)
    for members in _equal_attributes(chain):
        kept = [left.pop(stream).kept for stream, name in members if stream in left and left[stream].attribute == name]
        values = max(0, min([_VALUES, *(each.stop for each in kept)]) - max([0, *(each.start for each in kept)]))
        remaining *= values / _VALUES ** len(members)
    return remaining * prod(len(selection.kept) / _VALUES for selection in left.values())


def _equal_attributes(chain: Chain) -> list[list[tuple[str, str]]]:
    """Return the (stream, attribute) pairs that a chain makes equal; a source joined on one attribute links both."""
    found: list[list[tuple[str, str]]] = []
    for before, after in pairwise(chain):
        if before.left != before.right:
            found.append([(before.stream, str(before.right))])
        found[-1].append((after.stream, str(after.left)))
    return found
