"""`firecircle replay`."""
