"""What a circle or panel shows, worked out once: data and sentences for terminal, viewer, file and report."""
