"""Hypothesis strategies over the random cases."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.case import Case
from tests.property.cases import random_case


def cases() -> st.SearchStrategy[Case]:
    """Draw cases by seed. Smaller seeds are not simpler; `tests.property.shrinking` simplifies."""
    return st.builds(random_case, st.integers(min_value=10**9, max_value=2 * 10**9), late=st.booleans())
