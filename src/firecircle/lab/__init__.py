"""Experiments: does the dialogue pay? Datasets come in, arms judge them, statistics tell what it shows.

Only the command line enters this room. It needs the extra `lab`.
"""
