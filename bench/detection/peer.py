"""A rival detector, `stackone-defender`, judged in an interpreter of its own: it is no part of this project.

It judges one text at a time. Of the ways to hand it a layered prompt the best for it was taken: each of the
application and user layers by itself, the worse one counting. All layers as one text cost it 3 points of AUC
and doubled its false alarms; application and user as one text cost it half a point of AUC.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from bench.detection.contenders import Contender, Milliseconds
from firecircle.lab.datasets import Record

INTERPRETER = "FIRECIRCLE_BENCH_PEER"
HOW_TO_HAVE_IT = (
    "the rival is not installed; to compare with it:\n"
    "  python -m venv peer && peer/bin/pip install 'stackone-defender[onnx]' psutil\n"
    f"  {INTERPRETER}=peer/bin/python python -m bench.detection"
)


def interpreter_of_peer() -> str | None:
    """The interpreter that has the rival, if there is one."""
    return os.environ.get(INTERPRETER) or (sys.executable if find_spec("stackone_defender") else None)


def judged_by_peer(records: Sequence[Record]) -> tuple[Contender, float] | None:
    """The rival on the same records, and its memory in MB; None where it is not installed."""
    interpreter = interpreter_of_peer()
    if interpreter is None:
        return None
    texts = [[text for text in (record.prompt.application, record.prompt.user) if text] for record in records]
    child = Path(__file__).with_name("peer_child.py")
    command = [interpreter, str(child)]
    try:
        ran = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as broken:
        reason = (getattr(broken, "stderr", None) or str(broken)).strip().splitlines()[-1]
        print(f"the rival could not be run: {reason}")
        return None
    answer = json.loads(ran.stdout)
    spent = Milliseconds(answer["milliseconds"], answer["cpu_milliseconds"])
    return Contender(answer["name"], answer["scores"], answer["alarms"], spent), answer["megabytes"]
