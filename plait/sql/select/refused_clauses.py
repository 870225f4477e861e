"""Clauses of a SELECT that Plait does not run, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CLAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "GROUP BY": "a second GROUP BY: list all groups in one",
        "HAVING": "HAVING without GROUP BY: write a condition on single results in WHERE",
        "ORDER BY": "ORDER BY: a stream of results has no end to sort; sort where the results are read",
        "SORT BY": "SORT BY: sort where the results are read",
        "CLUSTER BY": "CLUSTER BY: Plait decides how rows are partitioned; leave it out",
        "DISTRIBUTE BY": "DISTRIBUTE BY: Plait decides how rows are partitioned; leave it out",
        "LIMIT": "LIMIT: a stream of results has no end; limit where the results are read",
        "OFFSET": "OFFSET: a stream of results has no end; skip rows where the results are read",
        "FETCH": "FETCH: a stream of results has no end; limit where the results are read",
        "WINDOW": "a WINDOW clause: window functions need ordered input; compute them where the results are read",
        "QUALIFY": "QUALIFY: window functions need ordered input; compute them where the results are read",
        "UNION": "UNION: write one CREATE QUERY for each SELECT; what they share is computed once",
        "EXCEPT": "EXCEPT: write one CREATE QUERY for each SELECT and compare their results",
        "MINUS": "MINUS: write one CREATE QUERY for each SELECT and compare their results",
        "INTERSECT": "INTERSECT: write one CREATE QUERY for each SELECT, or join on all columns",
        "LATERAL": "LATERAL: flatten arrays before the stream is read, or where the results are read",
        "PIVOT": "PIVOT: pivot where the results are read",
        "UNPIVOT": "UNPIVOT: unpivot where the results are read",
        "TABLESAMPLE": "TABLESAMPLE: select rows by a condition on a column in WHERE",
    }
)

__all__ = ["CLAUSES"]
