"""Every example in a docstring of `plait` comes out as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

import plait
from tests.docstrings import modules_with_examples, run_examples


@pytest.mark.parametrize("module", modules_with_examples(Path(plait.__file__).parent))
def test_the_examples_of_a_module_come_out_as_written(module: str) -> None:
    outcome = run_examples(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
