"""EXPLAIN to the letter. After an intended change run with PLAIT_UPDATE_GOLDEN=1 and read the difference."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from plait.optimizer.advise.comparing import compare
from plait.optimizer.assemble.build import build
from plait.plan.explain import explain
from plait.plan.model import Plan
from plait.plan.validate import validate
from plait.stats.declared import declared_statistics
from tests.golden.cases import CASES, UNCHANGED, Case
from tests.unit.optimizer.queries import options, planned

HERE = Path(__file__).parent
ENDINGS = {"text": "txt", "json": "json", "mermaid": "mmd"}
KEPT = [(name, format) for name, case in CASES.items() for format in case.formats]


def plan_of(case: Case) -> Plan:
    if not case.orders:
        return planned(case.queries, case.strategy, sources=case.sources, parallelism=case.parallelism)
    chosen = options("ilp", case.sources, case.parallelism)
    made = build(case.queries, case.orders, declared_statistics(case.sources), chosen, covering=case.wide)
    validate(made, case.queries)
    return replace(made, solution=case.solution)


def explained(case: Case, format: str) -> str:
    chosen = options(case.strategy, case.sources, case.parallelism)
    made = plan_of(case)
    comparison = compare(made, case.queries, declared_statistics(case.sources), chosen)
    return explain(made, format, comparison=comparison, measured=case.measured)


@pytest.mark.parametrize(("name", "format"), KEPT)
def test_explain_says_what_it_always_said(name: str, format: str) -> None:
    path = HERE / f"{name}.{ENDINGS[format]}"
    found = explained(CASES[name], format)
    if os.environ.get("PLAIT_UPDATE_GOLDEN") == "1":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


def test_every_kept_file_belongs_to_a_case() -> None:
    expected = {f"{name}.{ENDINGS[format]}" for name, format in KEPT}
    assert {path.name for path in HERE.iterdir() if path.suffix in (".txt", ".json", ".mmd")} == expected


@pytest.mark.parametrize("name", UNCHANGED)
def test_another_way_to_ask_changes_nothing_but_aliases(name: str) -> None:
    asked, again = plan_of(CASES[name]), plan_of(UNCHANGED[name])
    assert asked != again, "the aliases do differ"
    assert explain(asked).partition("\nStores")[2] == explain(again).partition("\nStores")[2]
    assert asked.stores == again.stores


@pytest.mark.parametrize("name", CASES)
def test_json_parses_and_names_every_edge_once(name: str) -> None:
    made = plan_of(CASES[name])
    document = json.loads(explain(made, "json"))
    ruled = [rule["edge"] for store in document["rules"] for rule in store["rules"] if rule["kind"] == "probe"]
    assert sorted(ruled) == sorted(step.edge for tree in made.trees for _, step in tree.walk())


LABEL = r'"(?:[^"`<>#;|\\]|<br/>|#\d+;)*"'
LINE = re.compile(
    "|".join(
        (
            r"flowchart LR",
            rf"  q\d+\(\[{LABEL}\]\)",
            rf"  subgraph t\d+\[{LABEL}\]",
            rf"    t\d+n\d+\[{LABEL}\]",
            rf"    t\d+n\d+\[\({LABEL}\)\]",
            rf"    t\d+n\d+ -->\|{LABEL}\| t\d+n\d+",
            r"  end",
            r"  t\d+n\d+ --> [cq]\d+",
            rf"  c\d+\{{\{{{LABEL}\}}\}}",
            r"  c\d+ --> q\d+",
            rf"  t\d+n\d+ -\.->\|{LABEL}\| c\d+",
            rf"  s\d+\[\({LABEL}\)\]",
            rf"  t\d+n\d+ -\.->\|{LABEL}\| s\d+",
            rf"  s\d+ -\.->\|{LABEL}\| t\d+n\d+",
        )
    )
)


@pytest.mark.parametrize("name", CASES)
def test_mermaid_is_made_of_lines_it_knows_and_nodes_that_exist(name: str) -> None:
    text = explain(plan_of(CASES[name]), "mermaid")
    for line in text.splitlines():
        assert LINE.fullmatch(line), line
    defined = set(re.findall(r"^ *(\w+)[\[({]", text, re.MULTILINE))
    used = {end for pair in re.findall(r"(\w+) -\.?->(?:\|.*\|)? (\w+)$", text, re.MULTILINE) for end in pair}
    assert used <= defined
    assert text.count("subgraph") == len(re.findall(r"^  end$", text, re.MULTILINE))


@pytest.mark.parametrize("name", CASES)
def test_no_output_shows_an_object_of_python(name: str) -> None:
    for format in ENDINGS:
        assert not re.search(r"0x[0-9a-f]{6,}|\bNone\b|<plait|Selection\(|\bnan\b", explained(CASES[name], format))
