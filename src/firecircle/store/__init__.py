"""What is stored: circles and panels, the events of those still sitting, patterns, participation, runs.

A circle is stored twice: as one document, which is the truth and comes back exactly as it was, and as rows,
which are there to be searched, counted and read with any database tool. Sibling rooms never import this one;
`convene` brings them together.
"""
