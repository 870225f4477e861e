"""What is done with sinks and dead letters before a run, when some of them cannot be reached."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from plait.errors import OptionError
from plait.query.model import SinkSpec, Stream
from plait.runtime.checkpoint.catalog import PATH
from plait.runtime.checkpoint.recovery import claim_sink, finish_last_batch, refuse_ended, whose, without_dropped
from plait.sinks.claims import Claim, ClaimedDirectory, Owner, file_name, read_owners
from plait.sinks.kind import Sink
from plait.sinks.kinds.json import Json
from plait.sinks.staging import stage
from plait.state.identity import identity_of
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest, OpenGroups, Undelivered
from plait.state.storage import Storage


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Bound:
    """What recovery reads of a `Binding`."""

    query: Named
    sink: Sink


def bound(folder: Path) -> Any:
    spec = SinkSpec(format="json", options=(("path", str(folder)),))
    return Bound(query=Named("q"), sink=Sink(spec=spec))


def checkpoint(folder: Path) -> tuple[Storage, str]:
    storage = Storage.open(str(folder / "plait"))
    identity = identity_of(storage)
    storage.create_file("id", identity.encode())
    storage.write_file(PATH, b"{}")
    return storage, identity


MANIFEST = Manifest(batch=3, watermark_us=None, plan="p", buckets=())


def publish(folder: Path, query: str, batch: int, identity: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file_name(query, batch, '00000', identity[:8])}.json"
    path.write_text("{}")
    return path


def unreachable_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sink fail when it is first asked, and answer from then on."""
    real, asked = ClaimedDirectory.refuse, []

    def first_fails(place: ClaimedDirectory) -> None:
        asked.append(place)
        if len(asked) == 1:
            raise OSError("no route to host")
        real(place)

    monkeypatch.setattr(ClaimedDirectory, "refuse", first_fails)


def test_a_sink_that_is_reached_only_later_loses_what_a_restored_checkpoint_has_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, identity = checkpoint(tmp_path / "ck")
    binding = bound(tmp_path / "out")
    finish_last_batch(storage, whose(storage), MANIFEST, [binding], [])
    done, undone = (publish(tmp_path / "out", "q", batch, identity) for batch in (3, 4))
    unreachable_once(monkeypatch)
    finish_last_batch(storage, whose(storage), MANIFEST, [binding], [])
    assert undone.exists()
    claim_sink(storage, MANIFEST, binding)
    assert (done.exists(), undone.exists()) == (True, False)


def test_a_sink_that_could_not_be_looked_at_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, _ = checkpoint(tmp_path / "ck")
    spec = SinkSpec(format="json", options=(("path", str(tmp_path / "out")),))
    theirs = Owner(checkpoint="f" * 32, place="/theirs", query="q")
    Json().claimed(spec, Claim(owner=theirs)).take()
    unreachable_once(monkeypatch)
    finish_last_batch(storage, whose(storage), MANIFEST, [bound(tmp_path / "out")], [])
    assert read_owners(str(tmp_path / "out")) == (theirs,)


def test_dead_letters_that_others_have_staged_are_left_alone(tmp_path: Path) -> None:
    storage, identity = checkpoint(tmp_path / "ck")
    staged = tmp_path / "letters" / "_staging"
    staged.mkdir(parents=True)
    ours = staged / f"{file_name('a', 4, '0123456789ab', identity[:8])}.parquet"
    others = [
        staged / f"{file_name('a', 4, '0123456789ab', 'f' * 8)}.parquet",
        staged / f"{file_name('a-b', 4, '0123456789ab', identity[:8])}.parquet",
    ]
    for path in (ours, *others):
        path.write_text("")
    stream = replace(Stream(name="a", time="ts"), dead_letter=str(tmp_path / "letters"))
    finish_last_batch(storage, whose(storage), MANIFEST, [], [stream])
    assert [path.exists() for path in (ours, *others)] == [False, True, True]


def test_results_that_could_not_be_published_outlive_a_start_without_their_file_system(tmp_path: Path) -> None:
    storage, identity = checkpoint(tmp_path / "ck")
    out, binding = tmp_path / "out", bound(tmp_path / "out")
    names = [f"{file_name('q', batch, '00000', identity[:8])}.json" for batch in (2, 3)]
    waits, fresh = (stage(str(out), name).publication for name in names)
    Path(waits.staged).write_text("{}")
    log = ManifestLog(storage)
    log.commit(replace(MANIFEST, batch=2, publications=(waits,)))
    manifest = replace(MANIFEST, publications=(waits, fresh))
    log.commit(manifest)
    out.rename(tmp_path / "unmounted")
    finished = finish_last_batch(storage, whose(storage), manifest, [binding], [])
    assert (finished.claimed, finished.unpublished) == (frozenset(), (waits,)), "a reader may have taken the fresh one"
    shutil.rmtree(out)
    (tmp_path / "unmounted").rename(out)
    claim_sink(storage, replace(manifest, publications=finished.unpublished), binding)
    assert (out / names[0]).read_text() == "{}"


def test_a_checkpoint_whose_input_has_ended_is_refused_once_its_last_results_are_in_sight(tmp_path: Path) -> None:
    storage, _ = checkpoint(tmp_path)
    sink = bound(tmp_path / "out")
    (tmp_path / "out").mkdir()
    staged = stage(str(tmp_path / "out"), "q-00000003-a.json").publication
    Path(staged.staged).parent.mkdir(parents=True, exist_ok=True)
    Path(staged.staged).write_text("{}")
    ended = replace(MANIFEST, publications=(staged,), ended=True)
    ManifestLog(storage).commit(ended)
    owner = whose(storage)
    for going_on in (None, MANIFEST):
        refuse_ended(storage, owner, going_on, [sink], ())
    assert not Path(staged.final).exists()
    with pytest.raises(OptionError, match="has ended: it was run with --close"):
        refuse_ended(storage, owner, ended, [sink], ())
    assert Path(staged.final).exists()


def test_a_checkpoint_whose_input_has_ended_is_not_refused_while_results_wait_for_their_sink(tmp_path: Path) -> None:
    storage, _ = checkpoint(tmp_path)
    late = Undelivered(query="q", batch=3, paths=("results/3/q.arrow",), rows=1, reason="SinkError: full")
    ended = replace(MANIFEST, undelivered=(late,), ended=True)
    ManifestLog(storage).commit(ended)
    refuse_ended(storage, whose(storage), ended, [bound(tmp_path / "out")], ())


def test_of_a_checkpoint_whose_input_has_ended_results_go_with_the_query_that_is_dropped(tmp_path: Path) -> None:
    storage, _ = checkpoint(tmp_path)
    late = tuple(
        Undelivered(query=name, batch=3, paths=(f"results/3/{name}.arrow",), rows=1, reason="full") for name in "qr"
    )
    ended = replace(MANIFEST, undelivered=late, ended=True)
    ManifestLog(storage).commit(ended)
    refuse_ended(storage, whose(storage), ended, [bound(tmp_path / "out")], (), {"r"})
    last = ManifestLog(storage).latest()
    assert last is not None
    assert [each.query for each in last.undelivered] == ["q"]
    with pytest.raises(OptionError, match="has ended"):
        refuse_ended(storage, whose(storage), last, [], (), {"q"})


def test_what_waits_of_a_query_goes_when_it_is_dropped_by_name() -> None:
    late = [Undelivered(query=query, batch=3, paths=("p",), rows=1, reason="full") for query in ("q", "r")]
    groups = [OpenGroups(query=query, identity="i", over_until_us=5) for query in ("q", "r")]
    both = replace(MANIFEST, undelivered=tuple(late), groups=tuple(groups))
    assert without_dropped(both, {"q"}) == replace(MANIFEST, undelivered=(late[1],), groups=(groups[1],))
    assert without_dropped(both, {"q"}, {"q"}) == replace(both, undelivered=(late[1],))
    assert without_dropped(both, ()) == both
