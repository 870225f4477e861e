"""What the pages for developers say is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.sql.script.set_options import checked_option

_ROOT = Path(__file__).parents[2]
_PAGES = ("docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md")
_CHOSEN = re.compile(r"pytest (tests/\S+\.py) -k (\w+)")
_NAMED = re.compile(r"`([\w/]+/[\w/.]*\w)(?::[^`]*)?`")


def _terms() -> list[str]:
    rows = (line for line in _read("docs/glossary.md").splitlines() if line.startswith("| **"))
    return [term for row in rows for term in re.findall(r"\*\*(.+?)\*\*", row.split("|")[1])]


def _texts() -> Iterator[str]:
    for path in (*(_ROOT / "plait").rglob("*.py"), *(_ROOT / "docs").glob("*.md"), _ROOT / "README.md"):
        if path.name != "glossary.md":
            yield path.read_text(encoding="utf-8").lower()


def _read(page: str) -> str:
    return (_ROOT / page).read_text(encoding="utf-8")


def test_the_glossary_has_at_most_forty_terms_and_each_is_used() -> None:
    terms, text = _terms(), "\n".join(_texts())
    assert 30 < len(terms) <= 40
    assert [term for term in terms if not re.search(rf"\b{term.lower()}", text)] == []


@pytest.mark.parametrize("page", _PAGES)
def test_files_and_folders_that_a_page_names_exist(page: str) -> None:
    named = sorted(set(_NAMED.findall(_read(page))))
    assert [name for name in named if not any((root / name).exists() for root in (_ROOT, _ROOT / "plait"))] == []


def test_a_test_that_a_page_chooses_by_a_word_exists() -> None:
    chosen = [each for page in _PAGES for each in _CHOSEN.findall(_read(page))]
    assert chosen
    assert [(path, word) for path, word in chosen if not re.search(rf"def test_\w*{word}", _read(path))] == []


def test_the_defaults_of_settings_in_the_readme_are_values_that_a_script_may_set() -> None:
    table = _read("README.md").split("**Settings**")[1].split("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `plait.")]
    told = [(re.findall(r"`([\w.]+)`", row[1]), re.findall(r"`([^`]+)`", row[-2])) for row in rows]
    pairs = [
        pair for names, defaults in told if len(names) == len(defaults) for pair in zip(names, defaults, strict=True)
    ]
    assert len(pairs) >= 15
    assert [checked_option(*pair) for pair in pairs] == pairs
    assert not [row[-2] for row in rows if re.search(r"\d [KMG]i?B\b", row[-2])]
