"""Mixed-integer linear programs in arrays, and HiGHS that solves them."""
