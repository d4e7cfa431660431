"""The ReasoningBank: patterns that circles found, saved for later retrieval."""
