"""What a run tells its reader, whoever that is: a person at a terminal, a log file, a program."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from plait.plan.strategy_names import StrategyName

if TYPE_CHECKING:
    from plait.runtime.batch.events import BatchEvent, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What is about to run. `queries` in the order of the script; `warnings`: what in it is probably not meant."""

    script: str
    strategy: StrategyName
    checkpoint: str
    queries: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class Output(Protocol):
    """A view of one run. `batch` may be called from another thread than the rest; all else from the main thread."""

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody reads any more: a reason to end the run."""

    def __enter__(self) -> Output: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def starting(self, info: RunInfo) -> None:
        """Say what is going to run."""

    def noticed(self, text: str) -> None:
        """Say what the user should know about this start."""

    def batch(self, event: BatchEvent) -> None:
        """Show one finished micro-batch."""

    def stopping(self) -> None:
        """Say that the run ends after the batch at hand."""

    def finished(self, summary: Summary) -> None:
        """Show the totals."""
