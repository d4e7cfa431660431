"""Text in disguise: decoders that yield plain text and where it stood."""
