"""Six joins of Nexmark over append-only streams of persons, auctions and bids, after its Flink edition.

Columns are Nexmark's own with a prefix, so that none is a reserved word anywhere; ``b_nr`` numbers the bids, which
have no identity of their own. Times are microseconds (Nexmark: milliseconds).

The suite's six joins are restated so that every result is final once it is out, for engines without retractions:

- Q3 (local items): as it is, within the window instead of the full history.
- Q4 (price by category): the join beneath the two aggregates, so all bids made while their auction was open.
- Q8 (new users): a person and an auction of theirs within 10 seconds of each other, instead of in the same tumbling
  10 seconds; one result an auction, where Nexmark drops repetitions.
- Q9 (winning bids): the bids that can win. They are made while the auction is open and reach its reserve; which of
  them is the highest would be known later and take a retraction. Nexmark's first edition asks for the reserve, the
  Flink edition does not.
- Q20 (bids with their auction) and Q23 (bids of people who also sell): as they are, within the window.

The window is Nexmark's own ``windowSizeSec``: 10 seconds, between any two members. At its rate of 10,000 events a
second no auction is open for longer than a second, so Q4 and Q9 lose nothing to the window.
"""

from __future__ import annotations

from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf
from plait.query.model import Column

WINDOW_S = 10


def _stream(name: str, time: str, **columns: str) -> JoinStream:
    types = {time: "timestamp", **columns}
    return JoinStream(name=name, time=time, columns=tuple(Column(name=name, type=kind) for name, kind in types.items()))


PERSON = _stream(
    "person",
    "p_ts",
    p_id="bigint",
    p_name="string",
    p_email="string",
    p_card="string",
    p_city="string",
    p_state="string",
    p_extra="string",
)
AUCTION = _stream(
    "auction",
    "a_ts",
    a_id="bigint",
    a_item="string",
    a_description="string",
    a_initial="bigint",
    a_reserve="bigint",
    a_expires="timestamp",
    a_seller="bigint",
    a_category="bigint",
    a_extra="string",
)
BID = _stream(
    "bid",
    "b_ts",
    b_nr="bigint",
    b_auction="bigint",
    b_bidder="bigint",
    b_price="bigint",
    b_channel="string",
    b_url="string",
    b_extra="string",
)
STREAMS = (PERSON, AUCTION, BID)

_TYPES = {column.name: (stream.name, column.type) for stream in STREAMS for column in stream.columns}
_SELLER = Join(left="auction", right="person", columns=(("a_seller", "p_id"),))
_BID_ON = Join(left="bid", right="auction", columns=(("b_auction", "a_id"),))
_IN_TIME = ("bid.b_ts >= auction.a_ts", "bid.b_ts <= auction.a_expires")


def _outputs(columns: str) -> tuple[OutputOf, ...]:
    return tuple(
        OutputOf(relation=relation, column=column, type=kind)
        for column in columns.split()
        for relation, kind in (_TYPES[column],)
    )


QUERIES: tuple[JoinQuery, ...] = (
    JoinQuery(
        name="q3",
        relations=("auction", "person"),
        joins=(_SELLER,),
        selections=(
            ("auction", "auction.a_category = 10"),
            ("person", "person.p_state = 'OR' OR person.p_state = 'ID' OR person.p_state = 'CA'"),
        ),
        outputs=_outputs("p_name p_city p_state a_id p_id a_ts p_ts"),
        window_s=WINDOW_S,
    ),
    JoinQuery(
        name="q4",
        relations=("auction", "bid"),
        joins=(_BID_ON,),
        conditions=_IN_TIME,
        outputs=_outputs("a_id a_category b_nr b_price a_ts b_ts"),
        window_s=WINDOW_S,
    ),
    JoinQuery(
        name="q8",
        relations=("person", "auction"),
        joins=(_SELLER,),
        outputs=_outputs("p_id p_name p_ts a_id a_ts"),
        window_s=WINDOW_S,
    ),
    JoinQuery(
        name="q9",
        relations=("auction", "bid"),
        joins=(_BID_ON,),
        conditions=(*_IN_TIME, "bid.b_price >= auction.a_reserve"),
        outputs=_outputs(
            "a_id a_item a_description a_initial a_reserve a_ts a_expires a_seller a_category a_extra b_nr b_bidder "
            "b_price b_ts b_extra"
        ),
        window_s=WINDOW_S,
    ),
    JoinQuery(
        name="q20",
        relations=("bid", "auction"),
        joins=(_BID_ON,),
        selections=(("auction", "auction.a_category = 10"),),
        outputs=_outputs(
            "b_nr b_bidder b_price b_channel b_url b_ts b_extra a_id a_item a_description a_initial a_reserve a_ts "
            "a_expires a_seller a_category a_extra"
        ),
        window_s=WINDOW_S,
    ),
    JoinQuery(
        name="q23",
        relations=("bid", "person", "auction"),
        joins=(
            Join(left="person", right="bid", columns=(("p_id", "b_bidder"),)),
            Join(left="auction", right="bid", columns=(("a_seller", "b_bidder"),)),
        ),
        outputs=_outputs(
            "b_nr b_bidder b_price b_channel b_url b_ts b_extra p_id p_name p_email p_card p_city p_state p_ts "
            "p_extra a_id a_item a_description a_initial a_reserve a_ts a_expires a_seller a_category a_extra"
        ),
        window_s=WINDOW_S,
    ),
)
