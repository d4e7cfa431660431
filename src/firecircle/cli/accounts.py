"""`firecircle accounts`: who may use the viewer of a store, with which role; tokens; and who did what."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from firecircle.cli.options import AsJson, MostListed, StoreOption, Yes
from firecircle.errors import ConfigError
from firecircle.names import Role

AccountName = Annotated[str, typer.Argument(metavar="NAME", help="The account.")]
RoleOption = Annotated[
    Role, typer.Option("--role", help="read looks, convene also convenes and labels, admin does all.")
]
Generate = Annotated[bool, typer.Option("--generate", help="Make up a password and show it once.")]
NOTHING_REMOVED = "nothing was removed"


def accounts_commands() -> typer.Typer:
    """The commands of the group."""
    group = typer.Typer(help="Accounts of the viewer: who may look, convene and delete, and who did.")
    group.command()(add)
    group.command("list")(list_accounts)
    group.command()(change)
    group.command()(remove)
    group.command()(token)
    group.command()(revoke)
    group.command()(log)
    return group


def add(
    name: AccountName,
    role: RoleOption,
    generate: Generate = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Make an account. The password is asked for at the terminal, else read from a line of standard input.

    \b
    firecircle accounts add ada --role admin
    firecircle accounts add robin --role read --generate
    """
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        is_first = not opened.accounts.exist()
        password = _password(generate=generate)
        account = opened.accounts.add(name, role, password)
    if is_first:
        print(
            "From now on `firecircle view` of this store asks for a name and a password;"
            " start viewers that run already again.",
            file=sys.stderr,
        )
    return _tell_account(
        f"{account.name} is added with the role {role}",
        account.name,
        role,
        password if generate else None,
        as_json=as_json,
    )


def list_accounts(store: StoreOption = None, as_json: AsJson = False) -> int:
    """List the accounts, and their tokens without the secrets."""
    from firecircle.cli.output import print_json
    from firecircle.cli.printable import printable_line
    from firecircle.store.opening import open_store
    from firecircle.telling.words import time_text

    with open_store(store) as opened:
        accounts, tokens = opened.accounts.each(), opened.accounts.tokens()
    if as_json:
        listed = {"accounts": accounts, "tokens": tokens}
        print_json({name: [one.model_dump() for one in lines] for name, lines in listed.items()})
        return 0
    if not accounts:
        print("no accounts: `firecircle view` asks nobody for a password; `accounts add` makes the first")
        return 0
    widest = max(len(one.name) for one in accounts)
    for account in accounts:
        since = time_text(account.created_at, "%Y-%m-%d")
        print(f"{account.name:{widest}}  {account.role:7}  since {since}")
        for token in tokens:
            if token.account == account.name:
                note = f"  {printable_line(token.note)}" if token.note else ""
                print(f"  token {token.id}  since {time_text(token.created_at, '%Y-%m-%d')}{note}")
    return 0


def change(
    name: AccountName,
    role: Annotated[Role | None, typer.Option("--role", help="The new role.")] = None,
    password: Annotated[bool, typer.Option("--password", help="Ask for a new password.")] = False,
    generate: Generate = False,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Give an account another role or password. A new password ends its sessions; its tokens stay."""
    from firecircle.store.opening import open_store

    if role is None and not password and not generate:
        raise ConfigError("--role", "say what shall change", "--role ROLE, --password or --generate")
    with open_store(store) as opened:
        opened.accounts.get(name)
        new = _password(generate=generate) if password or generate else None
        account = opened.accounts.change(name, role=role, password=new)
    line = f"{account.name} has the role {account.role}{' and a new password' if new else ''}"
    return _tell_account(line, account.name, account.role, new if generate else None, as_json=as_json)


def remove(name: AccountName, yes: Yes = False, store: StoreOption = None, as_json: AsJson = False) -> int:
    """Take an account out, with its sessions and tokens. What it did stays on record."""
    from firecircle.cli.output import is_confirmed, print_outcome
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        opened.accounts.get(name)
        if not is_confirmed(f"Remove the account {name}?", yes=yes, otherwise=NOTHING_REMOVED):
            return print_outcome(NOTHING_REMOVED, {"removed": None}, as_json=as_json)
        opened.accounts.remove(name)
        is_last = not opened.accounts.exist()
    if is_last:
        print("No account is left: viewers that are started now ask nobody for a password.", file=sys.stderr)
    return print_outcome(f"{name} is removed", {"removed": name}, as_json=as_json)


def token(
    name: AccountName,
    note: Annotated[str, typer.Option(metavar="WORDS", help="What it is for.")] = "",
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Make a token with which a program has the role of an account, and show it once."""
    from firecircle.cli.output import print_json
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        made = opened.accounts.add_token(name, note)
    if as_json:
        print_json({**made.token.model_dump(), "secret": made.secret})
        return 0
    print(f"token {made.token.id} of {name}; it is shown only now:", file=sys.stderr)
    print(made.secret)
    return 0


def revoke(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="As `accounts list` shows it.")],
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Make a token useless."""
    from firecircle.cli.output import print_outcome
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        gone = opened.accounts.revoke(token_id)
    return print_outcome(f"token {gone.id} of {gone.account} is revoked", gone.model_dump(), as_json=as_json)


def log(
    limit: MostListed = 50,
    subject: Annotated[
        str | None, typer.Option("--of", metavar="ID", help="Only of this circle or account.")
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """List who labelled, deleted and changed what, the latest first."""
    from firecircle.cli.output import print_json
    from firecircle.cli.printable import printable_line
    from firecircle.store.opening import open_store
    from firecircle.telling.words import time_text

    with open_store(store) as opened:
        actions = opened.actions.each(subject=subject, limit=limit)
    if as_json:
        print_json({"actions": [one.model_dump() for one in actions]})
        return 0
    for one in actions:
        parts = (time_text(one.at, "%Y-%m-%d %H:%M:%S"), one.by, one.what, one.subject, one.detail)
        print(*(printable_line(part) for part in parts if part), sep="  ")
    if not actions:
        print("nothing was labelled, deleted or changed")
    return 0


def _password(*, generate: bool) -> str:
    from firecircle.store.accounts import new_password

    if generate:
        return new_password()
    if sys.stdin is None or not sys.stdin.isatty():
        line = sys.stdin.readline().rstrip("\r\n") if sys.stdin else ""
        if not line:
            raise ConfigError("password", "none on standard input", "--generate makes one up")
        return line
    import getpass

    first = getpass.getpass("Password: ")
    if getpass.getpass("Once more: ") != first:
        raise ConfigError("password", "the two differ", "nothing was changed; try again")
    return first


def _tell_account(line: str, name: str, role: Role, password: str | None, *, as_json: bool) -> int:
    from firecircle.cli.output import print_outcome

    document = {"name": name, "role": role, **({"password": password} if password else {})}
    shown = f"{line}; the password, shown only now: {password}" if password else line
    return print_outcome(shown, document, as_json=as_json)
