"""The Spark session: how it starts, and what runs in its workers.

In: settings, a checkpoint's storage. Out: a session that is ready early, and tasks as functions over Arrow batches.
What must hold: a task carries only plain records, and none begins before its worker is seen to see the checkpoint.
"""
