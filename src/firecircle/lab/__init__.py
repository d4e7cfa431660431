"""Experiments: does the dialogue help? Datasets are read, arms judge them, and statistics show the result.

Only the command line imports this package. It needs the extra `lab`.
"""
