"""Which queries go on without those that are set aside."""

from __future__ import annotations

from typing import Any

import pytest

from plait.runtime.setting_aside import SettingAside


def test_a_query_may_come_while_others_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings: dict[str, Any] = {"a": 1, "b": 2}

    def of(self: SettingAside, binding: Any) -> None:
        bindings["added by another thread"] = 3

    monkeypatch.setattr(SettingAside, "of", of)
    aside = SettingAside(lambda: pytest.fail("nothing is read"))
    assert aside.without(bindings) == {"a": 1, "b": 2}
