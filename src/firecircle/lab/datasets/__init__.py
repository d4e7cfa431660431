"""Labelled prompts as a stream of records, from any file format.

Call `read_dataset`. An unusable row is reported with its line, never dropped silently.
"""

from firecircle.lab.datasets.reading import read_dataset
from firecircle.lab.datasets.record import BadRow, BadRows, FieldMap, Record

__all__ = ["BadRow", "BadRows", "FieldMap", "Record", "read_dataset"]
