"""Pipelines of stages: the YAML file, its steps in order, and the child processes that make several at a time."""
