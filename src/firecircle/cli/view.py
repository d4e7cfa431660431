"""`firecircle view`: look at circles in the browser, watch them sit, convene them."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from firecircle.cli.options import StoreOption
from firecircle.errors import ConfigError, install_command

PORT = 8477


def view(
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on; beyond loopback only with a token."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 takes any free one.")
    ] = PORT,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            envvar="FIRECIRCLE_VIEW_TOKEN",
            show_envvar=True,
            help="Token for reading and changing everything; at least 16 characters.",
        ),
    ] = None,
    read_token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            envvar="FIRECIRCLE_VIEW_READ_TOKEN",
            show_envvar=True,
            help="Token for reading only. Without --token nothing can be changed.",
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Public address of a proxy in front of this server."),
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="Believe X-Forwarded-For and -Proto; only if every request passes a proxy."
        ),
    ] = False,
    certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Speak TLS with this certificate (PEM).")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="FILE", help="The certificate's private key.")] = None,
    store: StoreOption = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address and the token for writing as JSON.")
    ] = False,
) -> int:
    """Open the viewer in the browser until Ctrl-C: read them, watch them live, convene new ones.

    \b
    firecircle view
    firecircle view --host 0.0.0.0 --token "$(openssl rand -hex 16)" --no-browser
    firecircle view --public-url https://circles.example.org --behind-proxy --token "$TOKEN" --no-browser
    """
    from firecircle.cli.output import print_json
    from firecircle.telling.safe_text import printable_line

    try:
        import jinja2  # noqa: F401 - only whether it is there
        import starlette  # noqa: F401 - likewise
        import uvicorn  # noqa: F401 - likewise
    except ModuleNotFoundError as missing:
        raise ConfigError("view", f"{missing.name} is not installed", install_command("view")) from None
    from firecircle.store.opening import open_store
    from firecircle.web.access import Access, is_loopback
    from firecircle.web.app import build_site
    from firecircle.web.serving import Tls, address_of, listening_socket, open_browser, serve

    if (certificate is None) != (key is None):
        raise ConfigError("--certificate", "needs --key, and the other way round")
    tls = Tls(certificate, key) if certificate and key else None
    name = _host_of(public_url)
    with open_store(store) as opened:
        access = Access(host, token, name, read_token, behind_proxy=behind_proxy)
        bound = listening_socket(host, port)
        address = address_of(bound, host, is_encrypted=tls is not None)

        def ready() -> None:
            if as_json:
                print_json({"url": address, "write_token": access.write_token, "store": opened.name})
            else:
                print(f"Fire Circle at {address}  (store: {printable_line(opened.name)}; Ctrl-C ends it)")
                if not is_loopback(host):
                    plain = "" if tls else " It is not encrypted."
                    print(f"Other machines can reach it; every reader needs a token.{plain}")
                elif token is None and read_token is None:
                    print("Every account of this machine can read and change it; --token keeps others out.")
            if not no_browser:
                open_browser(address)

        with suppress(KeyboardInterrupt):  # that is how it ends
            serve(build_site(opened, access), bound, ready, tls)
    return 0


def _host_of(public_url: str | None) -> str | None:
    """The host name in the address of a proxy."""
    if public_url is None:
        return None
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(public_url)
        name = parts.hostname
    except ValueError:
        name = None
    if not name or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        raise ConfigError("--public-url", "no address without a path", "such as https://circles.example.org")
    return name.lower()
