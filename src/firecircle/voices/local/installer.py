"""The package installer at hand: this environment's pip, else uv."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

from firecircle.errors import ConfigError

PIP = "pip"
WHEELS_ALONE = ("--no-deps", "--only-binary", ":all:")
"""No dependencies, and nothing that would have to be built, which is to say run."""


def install_command() -> list[str]:
    """What installs wheels into this environment."""
    if _has_pip():
        return [*_pip("install"), *WHEELS_ALONE]
    return [*_uv(), *WHEELS_ALONE]


def download_command(folder: str) -> list[str]:
    """What brings wheels into a folder, packed (pip) or unpacked (uv), and leaves no copy elsewhere."""
    if _has_pip():
        return [*_pip("download"), "--no-cache-dir", *WHEELS_ALONE, "--dest", folder]
    return [*_uv(), "--no-cache", *WHEELS_ALONE, "--target", folder]


def run_installer(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one of these, with further environment variables."""
    # Not in the working folder: uv would take the package index from a uv.toml there.
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=sys.base_prefix,
        env={**os.environ, **variables},
    )


def last_line(finished: subprocess.CompletedProcess[str]) -> str:
    """Why it failed, in the installer's own words."""
    told = finished.stderr.strip() or finished.stdout.strip() or "no reason given"
    return told.splitlines()[-1].strip()


def _has_pip() -> bool:
    return importlib.util.find_spec(PIP) is not None


def _pip(verb: str) -> list[str]:
    return [sys.executable, "-P", "-m", PIP, verb, "--disable-pip-version-check", "--quiet"]


def _uv() -> list[str]:
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    raise ConfigError(None, f"neither pip nor uv is here to install packages into {sys.prefix}")
