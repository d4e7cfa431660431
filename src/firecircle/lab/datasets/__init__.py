"""Labelled prompts as a stream of records, whatever file they come from.

`read_dataset` is the door. A row that cannot be used is reported with its line, never dropped in silence.
"""

from firecircle.lab.datasets.reading import Survey, read_dataset, survey
from firecircle.lab.datasets.record import BadRow, BadRows, FieldMap, Record

__all__ = ["BadRow", "BadRows", "FieldMap", "Record", "Survey", "read_dataset", "survey"]
