"""`firecircle mcp`."""
