"""The command line: one module a command, and how a run is shown."""
