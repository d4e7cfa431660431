"""`firecircle circles`."""
