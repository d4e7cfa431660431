"""Who can speak: hosted models, embedded analysers, recordings, and any function that answers."""
