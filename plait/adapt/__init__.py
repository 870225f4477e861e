"""Plans that follow the data: history, forecast, decision, changelog; no Spark and no files.

What enters: the numbers of finished batches (manifests, reports of probe tasks), the queries, the plan in force. What
leaves: a `Change`, that is the changelog from the plan in force to a better one, and what it is expected to gain. What
must hold: results never depend on it, a batch never waits for it (but where a storage budget was broken), and the
runtime carries out a change by applying its changelog, nothing else.

`history` counts what probing shows, `forecast` makes statistics of it, `planning` plans on these, `weighing` says what
plans cost, did cost, and cost to change, `rule` whether a plan is taken, `reconsidering` puts these together,
`decision` tells of it, `other_orders` says what to try with a few tuples, `budget` says which stores must go, and
`adapter` when all this happens.
"""
