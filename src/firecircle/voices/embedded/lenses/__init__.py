"""The lenses: each looks at a read prompt for one kind of manipulation."""
