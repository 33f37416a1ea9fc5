"""Training: one loop, and the objectives that run in it."""
