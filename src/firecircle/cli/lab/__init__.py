"""`firecircle lab`."""
