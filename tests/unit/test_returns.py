"""How straight the way is from the text of a query to its plan, and from a plan into a batch (`tools/returns.py` has
the rule).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.one_batch import carry_out
from tools.returns import follow, follow_batch

SCRIPT = """
CREATE STREAM r (a BIGINT, x BIGINT, r_ts TIMESTAMP) USING json OPTIONS (path 'r', rate '100', distinct.a '50')
  TIMESTAMP BY r_ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM s (a BIGINT, b BIGINT, y BIGINT, s_ts TIMESTAMP) USING json OPTIONS (path 's', rate '100')
  TIMESTAMP BY s_ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM t (b BIGINT, z BIGINT, t_ts TIMESTAMP) USING json OPTIONS (path 't', rate '10', distinct.b '20')
  TIMESTAMP BY t_ts WINDOW INTERVAL 60 SECONDS;
CREATE QUERY q INTO json OPTIONS (path 'out')
  AS SELECT r.x, s.y, t.z FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b WHERE r.x > 5 AND s.y <= t.z;
"""


@pytest.mark.parametrize(("strategy", "most"), [("greedy", 7), ("dppick", 15), ("ilp", 9)])
def test_a_reader_seldom_goes_back_to_a_module_already_left(tmp_path: Path, strategy: str, most: int) -> None:
    for name in "rst":
        (tmp_path / name).mkdir()
    (tmp_path / "q.sql").write_text(SCRIPT)
    stops = [module for module, _ in follow(tmp_path / "q.sql", strategy)]
    assert len(set(stops)) > 20
    assert len(stops) - len(set(stops)) <= most


def test_a_reader_seldom_goes_back_on_the_way_from_a_plan_into_a_batch() -> None:
    stops = [module for module, _ in follow_batch()]
    assert {"plait.runtime.batch.microbatch", "plait.sinks.files", "plait.state.manifest"} <= set(stops)
    assert len(stops) - len(set(stops)) <= 8  # 24 at the commit before the redesign


def test_the_batch_that_is_followed_has_results_in_both_sinks() -> None:
    assert carry_out() == {"direct": 32, "spooled": 32}
