"""A run as one file to read, attach and cite: words that the numbers support, tables, plots, dialogues."""

from firecircle.lab.report.page import ReportFiles, write_report

__all__ = ["ReportFiles", "write_report"]
