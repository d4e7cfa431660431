"""The ReasoningBank: patterns that circles found, kept for later retrieval."""
