"""Which ranked blocks are relevant."""
