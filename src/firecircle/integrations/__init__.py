"""Fire Circle inside the tools of others. Each module needs its extra and is imported by its users alone."""
