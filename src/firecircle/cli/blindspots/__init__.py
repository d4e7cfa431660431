"""`firecircle blindspots`."""
