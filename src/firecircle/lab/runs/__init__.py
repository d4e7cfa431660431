"""Runs: arms put through datasets, journaled so that nothing is lost and nothing is paid for twice.

`open_run` and `complete` are the doors. Data flows one way: plan → folder → cases → arms → journal →
`records.parquet`.
"""

from firecircle.lab.runs.folder import RunFolder, find_run, list_runs
from firecircle.lab.runs.runner import RunState
from firecircle.lab.runs.starting import complete, open_run

__all__ = ["RunFolder", "RunState", "complete", "find_run", "list_runs", "open_run"]
