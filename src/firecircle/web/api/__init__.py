"""The HTTP API under /api/v1; the pages use it as any other program does."""
