"""The command line: a folder per command group, shared options and output in two files."""
