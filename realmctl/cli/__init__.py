"""The command line: the application, each stage as a command, and one file for each of the other commands."""
