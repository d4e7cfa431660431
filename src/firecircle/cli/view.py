"""`firecircle view`: look at circles in the browser, watch them sit, convene them."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from firecircle.cli.options import StoreOption
from firecircle.errors import ConfigError

PORT = 8477


def view(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; other than loopback needs --token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Which port; 0 takes any that is free.")
    ] = PORT,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            envvar="FIRECIRCLE_VIEW_TOKEN",
            show_envvar=True,
            help="What every reader must know; at least 16 characters.",
        ),
    ] = None,
    store: StoreOption = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address and the token for writing as JSON.")
    ] = False,
) -> int:
    """Show circles in the browser until Ctrl-C: read them, watch them live, convene new ones.

    \b
    firecircle view
    firecircle view --host 0.0.0.0 --token "$(openssl rand -hex 16)" --no-browser
    """
    from firecircle.cli.output import print_json
    from firecircle.cli.printable import printable_line

    try:
        import jinja2  # noqa: F401 - only whether it is there
        import starlette  # noqa: F401 - likewise
        import uvicorn  # noqa: F401 - likewise
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "view", f"{missing.name} is not installed", "pip install 'firecircle[view]'"
        ) from None
    from firecircle.store.opening import open_store
    from firecircle.web.access import Access, is_loopback
    from firecircle.web.app import build_site
    from firecircle.web.serving import address_of, listening_socket, open_browser, serve

    access = Access(host, token)
    with open_store(store) as opened:
        bound = listening_socket(host, port)
        address = address_of(bound, host)

        def ready() -> None:
            if as_json:
                print_json({"url": address, "write_token": access.write_token, "store": opened.name})
            else:
                print(f"Fire Circle at {address}  (store: {printable_line(opened.name)}; Ctrl-C ends it)")
                if not is_loopback(host):
                    print("Other machines can reach it; every reader needs the token. It is not encrypted.")
                elif token is None:
                    print("Every account of this machine can read and change it; --token keeps others out.")
            if not no_browser:
                open_browser(address)

        with suppress(KeyboardInterrupt):  # that is how it ends
            serve(build_site(opened, access), bound, ready)
    return 0
