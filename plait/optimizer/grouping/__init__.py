"""Groups of queries that share enough rows (paper 004, section 4): strategy `adhoc`.

In: queries, statistics, options. Out: covering queries, one width for each group, and a probe order for every stream of
every query. What must hold: all together never cost more than if all queries that can were joined as one, nor than if
none were; what is joined for a group takes all that one of its queries takes; equal input gives an equal decision.

`join_classes` says what may be shared, `sharing_cost` what that costs, `groups` forms groups join by join, `iteration`
chooses which subqueries are shared and in which order queries join, `choose` puts it together.
"""
