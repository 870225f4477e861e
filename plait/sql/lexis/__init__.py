"""Words and grammar: from characters to tokens, and from tokens to types, literals and operations.

In: the user's text. Out: tokens with their place in it, and what can be said of them without knowing any column. What
must hold: offsets count in the user's own text, comments are blank and nothing else is changed; precedence is that of
Spark's grammar, not sqlglot's.
"""
