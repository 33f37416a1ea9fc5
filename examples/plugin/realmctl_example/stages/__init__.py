"""One file, one stage. The name of the file is the name of the command."""
