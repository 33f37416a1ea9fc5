"""The commands that are not stages: one file, one command of the same name."""
