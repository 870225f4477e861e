"""The suite: any workload on any systems, compared, reported and compared again."""
