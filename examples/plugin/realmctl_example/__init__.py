"""A stage, a searcher and a type of index for realmctl."""
