"""Judging many prompts: every paid call is journaled before it is used, so that work that is killed goes on.

Batches and runs of the lab use the same journal, the same journaled voices and the same rule for outages.
"""
