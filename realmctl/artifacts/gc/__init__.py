"""`realmctl gc`: delete versions that nothing needs."""
