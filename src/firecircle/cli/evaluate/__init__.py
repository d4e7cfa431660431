"""`firecircle evaluate`."""
