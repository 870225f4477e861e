"""Numbers about the data: what is declared, what was measured."""
