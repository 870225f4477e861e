"""The runner: any workload on any systems; results are checked first, then times are taken, into a report."""
