"""Changing the plan of a running stream to fit its data. No Spark."""
