"""Modules build on each other, and two of one name are one idea seen from two sides."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("plait", "benchmarks", "tests", "tools")


def _modules() -> dict[str, Path]:
    paths = (path for package in _PACKAGES for path in (_ROOT / package).rglob("*.py"))
    return {_name(path.relative_to(_ROOT)): path for path in paths}


def _name(path: Path) -> str:
    return ".".join(path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts)


def _imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the modules that a file imports anywhere in it: when it is loaded, when called, or for its types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            wholes = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (whole if whole in modules else node.module for whole in wholes if node.module in modules)


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one circle in order, [] if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_imports_go_in_a_circle_lazy_ones_included() -> None:
    modules = _modules()
    assert _circle({name: set(_imported(path, modules)) - {name} for name, path in modules.items()}) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from one.b import x",
        "from one import b",
        "import one.b",
        "def late() -> None:\n    from one.b import x",
        "if TYPE_CHECKING:\n    from one.b import X",
    ],
)
def test_a_circle_is_found_however_it_is_closed(tmp_path: Path, statement: str) -> None:
    modules = {"one.a": tmp_path / "a.py", "one.b": tmp_path / "b.py", "one": tmp_path / "__init__.py"}
    modules["one.a"].write_text(statement)
    modules["one.b"].write_text("import one.a")
    modules["one"].write_text("")
    graph = {name: set(_imported(path, modules)) for name, path in modules.items()}
    assert set(_circle(graph)) == {"one.a", "one.b"}


_ONE_IDEA = {
    "arguments": "what several commands take",
    "bands": "band predicates: read from SQL, looked up by a kernel",
    "check": "a script's mistakes: found, and told by the command",
    "closings": "what comes by the watermark: worked out of queries, and told by EXPLAIN",
    "connectors": "jars for formats that Spark lacks: known, and told by the command",
    "codec": "what is kept on disk, to JSON and back",
    "figures": "numbers as a person reads them",
    "flights": "the demo's data, and the benchmark on it",
    "groups": "queries that are joined as one: formed, and told by EXPLAIN",
    "making": "AS SELECT: read from SQL, carried out by Spark",
    "model": "the records of a layer",
    "options": "what may be set, as a table",
    "sketch": "distinct counts: made by a kernel, read as statistics",
}


def test_modules_of_one_name_are_one_idea() -> None:
    names = Counter(name.rpartition(".")[2] for name in _modules() if name.startswith(("plait.", "benchmarks.")))
    packages = {path.parent.name for path in _modules().values() if path.name in ("__init__.py", "__main__.py")}
    twins = {name for name, count in names.items() if count > 1} - packages - {"__main__", "conftest"}
    assert {name for name in twins if not name.startswith("test_")} - _ONE_IDEA.keys() == set()
