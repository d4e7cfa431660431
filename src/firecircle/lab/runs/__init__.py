"""Runs: arms put through datasets, journaled so that nothing is lost and nothing is paid for twice.

`starting.open_run` and `starting.complete` are the doors. Data flows one way: plan → folder → cases → arms →
journal → `records.parquet`.
"""
