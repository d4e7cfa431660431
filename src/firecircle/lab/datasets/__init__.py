"""Labelled prompts as a stream of records, whatever file they come from.

`read_dataset` is the door. A row that cannot be used is told with its line, never dropped in silence.
"""

from firecircle.lab.datasets.field_map import FieldMap
from firecircle.lab.datasets.reading import read_dataset
from firecircle.lab.datasets.record import BadRow, BadRows, Label, Record
from firecircle.lab.datasets.survey import Survey, survey

__all__ = ["BadRow", "BadRows", "FieldMap", "Label", "Record", "Survey", "read_dataset", "survey"]
