"""Pipelines of stages: the YAML file, the order of its steps, and the child processes of `--jobs`."""
