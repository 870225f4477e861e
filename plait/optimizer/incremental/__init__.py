"""Planning for queries that come and go (paper 004, section 4): what they touch is planned anew, all else stays.

In: the plan in force with its queries, and the queries there are now. Out: a plan for these. What must hold: it
computes them as a plan from scratch does; steps and stores that only a dropped query needed are gone; a step that an
added query has in common with others is one step; what nothing touches is the very same object as before.

`former` says what changed and when that is too much, `dropping` takes queries out of a plan, `extending` plans those
that are added beside it, `growing` is the plan while they are added, `replan` is the way through it.
"""
