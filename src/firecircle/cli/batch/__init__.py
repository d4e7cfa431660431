"""`firecircle evaluate --batch`: many prompts in one process."""
