"""The stages: one file, one stage, one command. A stage is found by its file; nothing is registered."""
