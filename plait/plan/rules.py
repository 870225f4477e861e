"""Rules of a store: what it does with the tuples that come in on an edge (paper 000, section V.B).

They say the same as the probe trees, seen from the stores, and are what EXPLAIN shows of the run-time behaviour.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias

from plait.plan.model import Member, Plan, Probed, Requirement
from plait.plan.traversals import fillings, kept_stores, probes
from plait.query.predicates import Conjunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrive:
    """A tuple of the source that can take part as `member` starts a probe path: send it on."""

    member: Member
    send: tuple[str, ...]
    emit: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """A tuple of the source that meets a requirement is kept."""

    requirements: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receive:
    """What a step of this batch finds, coming from edge `edge`, is kept."""

    edge: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What comes in on `edge` probes with `predicates`; results go out on the edges `send`, to the
    queries `emit` and into the intermediate stores `keep`.

    `path` lists the members a tuple on the edge consists of, by position.
    """

    edge: str
    path: tuple[Member, ...]
    member: Member
    predicates: Conjunction[Probed]
    send: tuple[str, ...]
    emit: tuple[str, ...]
    keep: tuple[str, ...] = ()
    parts: tuple[Member, ...] = ()

    @property
    def members(self) -> tuple[Member, ...]:
        """The relations a match adds to the path."""
        return self.parts or (self.member,)


Rule: TypeAlias = Keep | Receive | Arrive | Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRules:
    """All rules of one store: keep, then what arrives, then what comes in on edges, by edge."""

    store: str
    rules: tuple[Rule, ...]


def rules(plan: Plan) -> tuple[StoreRules, ...]:
    """Derive the rules of every store, in the order of the stores."""
    rules_of: dict[str, list[Rule]] = defaultdict(list)
    kept = kept_stores(plan)
    for store in plan.stores:
        if store.id in kept and store.intermediate is None:
            rules_of[store.id].append(Keep(requirements=store.requirements))
    for _, steps, fill in sorted(fillings(plan), key=lambda filling: filling[1][-1].edge):
        rules_of[fill.store].append(Receive(edge=steps[-1].edge))
    for tree in plan.trees:
        rules_of[tree.start.store].append(
            Arrive(
                member=tree.start,
                send=tuple(step.edge for step in tree.children),
                emit=tuple(output.query for output in tree.outputs),
            )
        )
    for path, step in sorted(probes(plan), key=lambda probe: probe[1].edge):
        rules_of[step.member.store].append(
            Probe(
                edge=step.edge,
                path=path,
                member=step.member,
                predicates=step.predicates,
                send=tuple(child.edge for child in step.children),
                emit=tuple(output.query for output in step.outputs),
                keep=tuple(fill.store for fill in step.fills),
                parts=step.parts,
            )
        )
    return tuple(StoreRules(store=store.id, rules=tuple(rules_of[store.id])) for store in plan.stores)
