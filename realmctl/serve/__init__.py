"""`realmctl serve`: questions, evidence and edits over HTTP, for people (a page) and for programs (a JSON API)."""
