"""The process that `local_server` starts."""

from __future__ import annotations

import sys

from firecircle.voices.local.server import serve

serve(sys.argv[1], int(sys.argv[2]))
