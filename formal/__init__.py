"""The model-checked specification of the circle, and what it takes to check it."""
