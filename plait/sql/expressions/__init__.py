"""Expressions: what their names mean, which functions they call, and of which type they are as far as can be told.

In: the tokens of one expression, and a scope of relations. Out: a `BoundExpression`, whose references are columns
spelled as in the schema, written down over one source or over a joined row. What must hold: the user's text is never
regenerated, only the places of references in it are replaced.
"""
