"""Say which rows came to nothing, and why.

In come what tasks counted (`plait.operators.reports`) and what the checkpoint remembers; out go counts, hints and
warnings for the summary, the status and ``--json``. Nothing here changes a result or ends a run: what cannot be known
for certain is left out.
"""
