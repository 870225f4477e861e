"""The service: a running engine over HTTP, for people, programs and Prometheus. An edge, like the command line.

In: requests. Out: plain values that the engine gives of itself (`served`), as JSON, text or a stream of events. The
engine knows nothing of it, and nothing here reads its state: all goes through the small interface `served.Served`, so
that what the service lets in can be tested without Spark. What comes in passes the `gate` first (who asks, from where,
how much and how fast), and what it says as SQL `plait.sql.script.remote`.
"""
