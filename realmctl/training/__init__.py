"""Training: the loop, the objectives that run in it, index refresh, and monitoring."""
