"""A checkpoint whose input has ended is refused by its newest manifest alone, where nothing is left to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from plait.errors import OptionError
from plait.sinks.staging import Publication
from plait.state.ended import refuse_finished
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest, Undelivered
from plait.state.place import state_of

ENDED = Manifest(batch=11, watermark_us=None, plan="1-a", ended=True)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[..., str]:
    """Makes a checkpoint with these manifests."""

    def made(*manifests: Manifest) -> str:
        log = ManifestLog(state_of(str(tmp_path)))
        for each in manifests:
            log.commit(each)
        return str(tmp_path)

    return made


def test_one_whose_input_has_ended_is_refused(checkpoint: Callable[..., str]) -> None:
    place = checkpoint(replace(ENDED, batch=9, ended=False), ENDED)
    with pytest.raises(OptionError, match=f"the input of checkpoint '{place}' has ended"):
        refuse_finished(place)
    with pytest.raises(OptionError, match="has ended"):
        refuse_finished(f"file://{place}")


def test_one_that_goes_on_is_not(checkpoint: Callable[..., str], tmp_path: Path) -> None:
    refuse_finished(str(tmp_path))
    refuse_finished(checkpoint(ENDED, replace(ENDED, batch=100, ended=False)))


def test_one_whose_sinks_have_not_taken_all_is_not(checkpoint: Callable[..., str]) -> None:
    waiting = Undelivered(query="q", batch=3, rows=1, paths=("results/3/q.arrow",), reason="full")
    refuse_finished(checkpoint(replace(ENDED, undelivered=(waiting,))))


def test_one_whose_results_are_not_in_sight_yet_is_not(checkpoint: Callable[..., str], tmp_path: Path) -> None:
    staged = tmp_path / "staged.parquet"
    staged.write_bytes(b"")
    publication = Publication(staged=str(staged), final=str(tmp_path / "out.parquet"))
    place = checkpoint(replace(ENDED, publications=(publication,)))
    refuse_finished(place)
    staged.unlink()
    with pytest.raises(OptionError, match="has ended"):
        refuse_finished(place)


def test_where_it_cannot_be_told_a_run_tells(checkpoint: Callable[..., str], tmp_path: Path) -> None:
    elsewhere = Publication(staged="s3://bucket/staged.parquet", final="s3://bucket/out.parquet")
    refuse_finished(checkpoint(replace(ENDED, publications=(elsewhere,))))
    refuse_finished("s3://bucket/checkpoint")
    (tmp_path / "plait" / "manifests" / "11.json").write_text('{"ended": true')
    refuse_finished(str(tmp_path))
