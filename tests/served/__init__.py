"""A service without Spark: a stand-in for the engine behind it, and requests as a stranger would make them."""
