"""All kinds of voices: hosted models, embedded readers, recordings, and user functions."""
