"""`firecircle voices`, `firecircle doctor` and `firecircle local`."""
