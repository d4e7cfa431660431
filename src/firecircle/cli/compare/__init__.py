"""`firecircle compare`."""
