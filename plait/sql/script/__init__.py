"""Whole scripts and settings: statements, sources with their columns, options.

In: a file of CREATE, DROP and SET, and the files its sources read. Out: a `Script`, every mistake in it, and warnings.
What must hold: nothing here starts Spark; a script without mistakes can still fail on what only Spark knows.
"""
