"""`firecircle batch`: many prompts in one process."""
