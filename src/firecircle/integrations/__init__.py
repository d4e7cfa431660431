"""Fire Circle in other tools. Each module needs its extra and is imported only by its users."""
