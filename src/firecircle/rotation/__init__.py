"""Who is invited: participation across sittings, weighted selection, and the empty chair's duty and words."""
