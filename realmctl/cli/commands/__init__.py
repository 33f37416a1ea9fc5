"""The commands that are not stages. The function in a file has the name of the file and of the command."""
