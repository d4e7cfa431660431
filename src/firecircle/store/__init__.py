"""The store: circles and panels, events of circles in progress, patterns, participation, runs.

A circle is stored twice: as one document, which is authoritative and loads exactly as saved, and as rows for
search, counts and any database tool. Sibling packages never import this one; `convene` connects them.
"""
