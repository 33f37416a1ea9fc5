"""One file, one stage, one command. Adding a stage is writing a file here; nothing is registered anywhere."""
