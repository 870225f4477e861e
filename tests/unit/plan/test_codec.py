from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plait.errors import CheckpointError
from plait.plan.codec import FORMAT, PartTexts, decode, encode
from plait.plan.model import ResidualFilter
from tests.unit.optimizer.queries import planned, query

PLAN = planned(
    (
        query(
            "q", {"r": "r", "s": "s"}, ["r.a = s.`naïve ``name`"], where={"r": ["`v` = '\"\\n→'"]}, windows={"s": None}
        ),
        query("p", {"r": "r"}),
    ),
    parallelism=3,
)


def test_a_plan_comes_back_equal_and_encodes_to_the_same_text() -> None:
    assert decode(encode(PLAN)) == PLAN
    assert encode(decode(encode(PLAN))) == encode(PLAN)


def test_parts_that_were_written_before_are_written_the_same() -> None:
    written = PartTexts()
    assert encode(PLAN, written) == encode(PLAN)
    other = replace(PLAN, stores=PLAN.stores[:1], trees=(replace(PLAN.trees[0], children=()), *PLAN.trees[1:]))
    assert encode(other, written) == encode(other)
    assert encode(PLAN, written) == encode(PLAN) == encode(decode(encode(PLAN)), written)


def test_parts_that_are_learned_ahead_are_known_when_the_plan_is_written() -> None:
    written = PartTexts()
    written.learn(PLAN)
    known = set(written.texts)
    assert encode(PLAN, written) == encode(PLAN)
    assert set(written.texts) == known


def test_what_is_known_of_parts_stays_in_bounds() -> None:
    written = PartTexts()
    for _ in range(9):
        plan = decode(encode(PLAN))
        encode(plan, written)
    parts = len(plan.stores) + len(plan.trees) + sum(1 for tree in plan.trees for _ in tree.walk())
    parts += sum(len(store.requirements) for store in plan.stores)
    assert parts <= len(written.texts) <= 2 * parts


def test_unknown_and_whole_estimates_survive() -> None:
    document = json.loads(encode(PLAN))
    step = document["plan"]["trees"][0]["children"][0]
    step["estimate"] |= {"probe_tuples": None, "results": 7}
    estimate = decode(json.dumps(document)).trees[0].children[0].estimate
    assert estimate == replace(PLAN.trees[0].children[0].estimate, probe_tuples=None, results=7.0)
    assert type(estimate.results) is float


def test_residual_filters_stand_where_earlier_versions_look_for_them() -> None:
    document = json.loads(encode(PLAN))
    step = document["plan"]["trees"][0]["children"][0]
    output = {"query": "q", "positions": [["a", 0]], "narrowings": [{"position": 0, "selection": None, "window_us": 5}]}
    step["outputs"] = [output]
    plan = decode(json.dumps(document))
    assert plan.trees[0].children[0].outputs[0].residual_filters == (ResidualFilter(position=0, window_us=5),)
    assert json.loads(encode(plan)) == document


def test_a_query_that_counts_comes_back_as_one_and_others_are_as_earlier_versions_wrote_them() -> None:
    document = json.loads(encode(PLAN))
    step = document["plan"]["trees"][0]["children"][0]
    assert "counts" not in step["outputs"][0]
    step["outputs"][0]["counts"] = True
    plan = decode(json.dumps(document))
    assert plan.trees[0].children[0].is_counted
    assert json.loads(encode(plan)) == document


def test_another_format_is_refused_by_name() -> None:
    text = encode(PLAN).replace(f'"format":{FORMAT}', '"format":99', 1)
    with pytest.raises(CheckpointError, match=f"format 99.*format {FORMAT}"):
        decode(text)


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", '{"format": 1}', '{"format": 1, "plan": {}}', "null"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(CheckpointError):
        decode(text)


def damaged() -> list[str]:
    """One text for each field of the plan and of its first store, left out, of another type, or unknown."""
    texts = []
    for place in ((), ("stores", 0), ("trees", 0), ("trees", 0, "start"), ("stores", 0, "keys", 0)):
        plain = json.loads(encode(PLAN))["plan"]
        node = plain
        for part in place:
            node = node[part]
        for name in list(node):
            kept = node[name]
            for wrong in ({"other": 1}, 3.5 if not isinstance(kept, float) else "x"):
                node[name] = wrong
                texts.append(json.dumps({"format": FORMAT, "plan": plain}))
            del node[name]
            texts.append(json.dumps({"format": FORMAT, "plan": plain}))
            node[name] = kept
        node["unknown"] = 1
        texts.append(json.dumps({"format": FORMAT, "plan": plain}))
    return texts


def test_damage_is_refused_wherever_it_is() -> None:
    texts = damaged()
    assert len(texts) > 50
    for text in texts:
        with pytest.raises(CheckpointError, match="damaged"):
            decode(text)
