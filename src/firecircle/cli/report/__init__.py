"""A circle on the terminal: the verdict, what explains it, and the table of voices and rounds."""
