"""`firecircle trust`: which `firecircle.toml` of a working folder is in force as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.options import AsJson
from firecircle.errors import ConfigError


def trust(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder whose firecircle.toml is meant.")
    ] = ".",
    revoke: Annotated[bool, typer.Option("--revoke", help="Stop trusting the file.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the files that you trust.")] = False,
    as_json: AsJson = False,
) -> int:
    """Trust the firecircle.toml of a folder, as long as its content stays the same.

    Until then such a file may only say which files `check` reads, and lower a budget. It may have come with
    a stranger's repository, and the rest can send prompts, files and keys away, so read it first.

    \b
    firecircle trust .
    firecircle trust --list
    firecircle trust . --revoke
    """
    from pathlib import Path

    from firecircle.cli.output import print_json, print_outcome
    from firecircle.settings import FILE_NAME, forget_settings, settings_to_trust, trusted_files
    from firecircle.telling.safe_text import printable_line

    trusted = trusted_files()
    file = Path(folder).absolute() / FILE_NAME
    if listed:
        files = trusted.read()
        if as_json:
            print_json({"trusted": files})
        for name, digest in files.items() if not as_json else ():
            print(f"{printable_line(name)}  sha256 {printable_line(digest)}")
        return 0
    forget_settings()
    if revoke:
        if not trusted.remove(file):
            raise ConfigError(str(file), "is not trusted", "`firecircle trust --list` lists those that are")
        return print_outcome(f"{file} is no longer trusted", {"revoked": str(file)}, as_json=as_json)
    if not file.exists():
        raise ConfigError(str(file), "there is no such file", "name the folder of a settings file")
    content, beyond = settings_to_trust(file)
    trusted.add(file, content)
    if not as_json:
        for name, value in beyond.items():
            print(printable_line(f"in force: {name} = {value}", 300))
    done = f"{file} is trusted until it changes; `firecircle trust {folder} --revoke` ends it"
    return print_outcome(done, {"trusted": str(file), "in_force": [*beyond]}, as_json=as_json)
