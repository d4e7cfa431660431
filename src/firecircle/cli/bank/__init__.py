"""`firecircle bank`."""
