"""Many machines instead of one, through Ray (extra `ray`).

The driver, which is the process of the command, alone reads and writes the journal, asks providers and
spends; workers hold the circles and send their questions to it. So limits, pauses and the budget are those of
one machine, keys never leave it, and a worker that is lost takes no answer with it
(docs/decisions/066-cluster.md).
"""
