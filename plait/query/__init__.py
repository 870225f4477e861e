"""What the user asked for, as plain frozen data: sources, relations, predicates, queries."""
