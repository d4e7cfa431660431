"""`python -m bench.detection`."""

from bench.detection import main

main()
