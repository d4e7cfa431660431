"""`python -m firecircle` is the same as `firecircle`."""

from firecircle.cli.main import main

if __name__ == "__main__":
    main()
