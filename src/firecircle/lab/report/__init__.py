"""A run as one file to read, attach and cite: words that the numbers support, tables, plots, dialogues."""
