"""Which arcs may lie on the way to a node."""

from __future__ import annotations

from plait.optimizer.multi_query.problem import Problem


class Ways:
    """Answers for one problem; `into` holds the arcs into each node."""

    def __init__(self, problem: Problem) -> None:
        self.into: list[list[int]] = [[] for _ in problem.is_root]
        self._tail = problem.tail.tolist()
        for arc, head in enumerate(problem.head.tolist()):
            self.into[head].append(arc)

    def to(self, node: int) -> list[int]:
        """Return the arcs on all paths to a node, ascending."""
        found: list[int] = []
        seen, waiting = {node}, [node]
        while waiting:
            arcs = self.into[waiting.pop()]
            found += arcs
            for arc in arcs:
                if self._tail[arc] not in seen:
                    seen.add(self._tail[arc])
                    waiting.append(self._tail[arc])
        return sorted(found)
