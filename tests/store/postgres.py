"""A PostgreSQL server of the tests' own: started on loopback in a folder that goes away with it."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FOR_TESTS_ONLY = "-F -c full_page_writes=off -c synchronous_commit=off -c shared_buffers=32MB"
"""A server that may lose everything in a power cut, and is quick for it."""


KEEPER = """
cat > /dev/null
server=$(head -n 1 "$0/data/postmaster.pid" 2> /dev/null)
if [ -n "$server" ]; then
  kill -QUIT "$server"
  while kill -0 "$server" 2> /dev/null; do sleep 0.05; done
fi
rm -rf "$0"
"""
"""Waits until whoever started it lets go, even by being killed; then ends the server and removes its folder."""


@contextmanager
def running_server() -> Iterator[str]:
    """The address of a server without databases of ours; skips the test where there is none to be had."""
    programs = _programs()
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="firecircle-pg-"))
    try:
        if user:
            shutil.chown(folder, user, user)
    except LookupError:
        folder.rmdir()
        pytest.skip("PostgreSQL does not run as root, and there is no user `postgres`")
    data, port = folder / "data", _free_port()

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [programs / program, "-D", data, *arguments],
            cwd=folder,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        if done.returncode:
            pytest.skip(f"PostgreSQL does not start here: {program}: {done.stderr.strip()[-300:]}")

    with subprocess.Popen(["sh", "-c", KEEPER, folder], stdin=subprocess.PIPE, start_new_session=True):
        run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        where = f"-h 127.0.0.1 -p {port} -k {folder}"
        run("pg_ctl", "start", "-w", "-l", str(folder / "log"), "-o", f"{where} {FOR_TESTS_ONLY}")
        yield f"postgresql://postgres@127.0.0.1:{port}"


def new_schema(server: str, name: str) -> str:
    """The URL of an empty schema, which is all a store needs."""
    import psycopg

    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{server}/postgres?options=-csearch_path%3D{name}"


def _programs() -> Path:
    pytest.importorskip("psycopg", reason="PostgreSQL needs the extra `postgres`", exc_type=ImportError)
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl")) or [shutil.which("pg_ctl") or ""]
    if not found[-1]:
        pytest.skip("PostgreSQL is not installed; `make setup` installs it where apt can")
    return Path(found[-1]).parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
