"""The systems compared: one module each, with a function from a task to an outcome."""
