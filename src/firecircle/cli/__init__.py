"""The command line: a folder per command group, a file for a small command.

`options.py` declares what several commands take, `output.py` how they print, `trouble.py` how they fail.
A `command.py` imports nothing heavy, so that `firecircle --help` is quick; the files beside it do the work.
"""
