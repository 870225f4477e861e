"""Workloads of the suite: streams on disk, and the questions asked about them."""
