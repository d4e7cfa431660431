"""Who may use the viewer of a store: accounts with a role and a password, their sessions and API tokens.

Passwords are kept as scrypt digests, the secrets of sessions and tokens as SHA-256: whoever reads the tables
can use none of them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from firecircle.errors import ConfigError
from firecircle.names import ROLES, Role
from firecircle.shapes import Shape
from firecircle.store.actions import record_action
from firecircle.store.database import ACCOUNTS_LOCK, Database, be_the_only_one, insert_unless_there, storable
from firecircle.store.tables import accounts, sessions, tokens

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 1000
LONGEST_NOTE = 100
DAYS_OF_A_SESSION = 7
TOKEN_BEGINS = "fc_"
"""So that whoever finds one in a file knows what it is."""
_COST, _BLOCK, _PARALLEL = 2**15, 8, 1
_MOST_MEMORY = 64 * 1024 * 1024
_hashing = threading.BoundedSemaphore(2)
"""Each digest takes 32 MB for a moment: many log-ins at once must wait, not fill the memory."""


class Account(Shape):
    """One person or program that may use the viewer."""

    name: str
    role: Role
    created_at: float

    def may(self, role: Role) -> bool:
        """Whether this role is included in the account's own."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Token(Shape):
    """One token of the HTTP API, by which a program has the role of an account."""

    id: str
    account: str
    note: str
    created_at: float


class NewSecret(NamedTuple):
    """A token and its secret, which is told once and then known to nobody here."""

    token: Token
    secret: str


class AccountStore:
    """The accounts of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def exist(self) -> bool:
        """Whether there is any account: then nobody uses the viewer without one."""
        with self.database.reading() as connection:
            return connection.execute(sa.select(accounts.c.name).limit(1)).first() is not None

    def each(self) -> tuple[Account, ...]:
        """Every account, by its name."""
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(*_ACCOUNT).order_by(accounts.c.name)).mappings()
            return tuple(Account(**row) for row in rows)

    def get(self, name: str) -> Account:
        """The account of this name."""
        with self.database.reading() as connection:
            return _account(connection, name)

    def add(self, name: str, role: Role, password: str, *, by: str | None = None) -> Account:
        """Make an account."""
        if not NAME.fullmatch(name):
            raise ConfigError(
                "name",
                "an account's name has up to 40 small letters, digits, dots, dashes and underscores",
                "such as ada or red-team",
            )
        account = Account(name=name, role=_role(role), created_at=time.time())
        row = {**account.model_dump(), "password": _digest_of(password)}
        with self.database.writing() as connection:
            added = insert_unless_there(connection.dialect.name, accounts).returning(accounts.c.name)
            if connection.execute(added, row).first() is None:
                raise ConfigError(name, "there is such an account already", "`firecircle accounts change`")
            record_action(connection, "account added", name, role, by=by)
        return account

    def change(
        self, name: str, *, role: Role | None = None, password: str | None = None, by: str | None = None
    ) -> Account:
        """Give an account another role or password. A new password ends its sessions; tokens stay."""
        values: dict[str, str] = {}
        if role is not None:
            values["role"] = _role(role)
        if password is not None:
            values["password"] = _digest_of(password)
        with self.database.writing() as connection:
            account = _account(connection, name)
            if not values:
                return account
            connection.execute(sa.update(accounts).where(accounts.c.name == name).values(values))
            if password is not None:
                connection.execute(sa.delete(sessions).where(sessions.c.account == name))
                record_action(connection, "password changed", name, by=by)
            if role is not None and role != account.role:
                record_action(connection, "role changed", name, f"{account.role} to {role}", by=by)
            return account.model_copy(update={"role": role or account.role})

    def remove(self, name: str, *, by: str | None = None, keep_an_admin: bool = False) -> None:
        """Take an account out, with its sessions and tokens. What it did stays on record."""
        with self.database.writing() as connection:
            be_the_only_one(connection, ACCOUNTS_LOCK)  # or two admins could remove each other
            account = _account(connection, name)
            if keep_an_admin and account.role == "admin" and _admins(connection) == 1:
                raise ConfigError(name, "the last admin", "make another one first")
            connection.execute(sa.delete(accounts).where(accounts.c.name == name))
            record_action(connection, "account removed", name, by=by)

    # -- sessions ----------------------------------------------------------------------------------

    def log_in(self, name: str, password: str) -> str | None:
        """The secret of a new session; None when name or password is wrong, which takes as long."""
        query = sa.select(accounts.c.name, accounts.c.password).where(accounts.c.name == storable(name))
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        fits = _fits(password, row.password if row else _nobodys_digest())
        if row is None or not fits:
            return None
        secret, now = secrets.token_urlsafe(32), time.time()
        with self.database.writing() as connection:
            connection.execute(sa.delete(sessions).where(sessions.c.expires_at < now))
            values = {"account": row.name, "created_at": now, "expires_at": now + DAYS_OF_A_SESSION * 86_400}
            connection.execute(sa.insert(sessions).values(digest=_sha256(secret), **values))
        return secret

    def is_password(self, name: str, password: str) -> bool:
        """Whether this is the password of the account."""
        query = sa.select(accounts.c.password).where(accounts.c.name == name)
        with self.database.reading() as connection:
            digest = connection.execute(query).scalar()
        return _fits(password, digest or _nobodys_digest()) and digest is not None

    def in_session(self, secret: str) -> Account | None:
        """Whose session this is, as long as it lasts."""
        query = sa.select(*_ACCOUNT).join(sessions, sessions.c.account == accounts.c.name)
        query = query.where(sessions.c.digest == _sha256(secret), sessions.c.expires_at >= time.time())
        with self.database.reading() as connection:
            row = connection.execute(query).mappings().first()
        return Account(**row) if row else None

    def log_out(self, secret: str) -> None:
        """End a session."""
        with self.database.writing() as connection:
            connection.execute(sa.delete(sessions).where(sessions.c.digest == _sha256(secret)))

    # -- tokens ------------------------------------------------------------------------------------

    def add_token(self, name: str, note: str = "", *, by: str | None = None) -> NewSecret:
        """A new token of this account for the HTTP API."""
        if len(note) > LONGEST_NOTE:
            raise ConfigError("note", f"at most {LONGEST_NOTE} characters")
        secret = TOKEN_BEGINS + secrets.token_urlsafe(32)
        digest = _sha256(secret)
        token = Token(id=digest[:12], account=name, note=storable(note), created_at=time.time())
        with self.database.writing() as connection:
            _account(connection, name)
            connection.execute(sa.insert(tokens).values(digest=digest, **token.model_dump(exclude={"id"})))
            record_action(connection, "token made", name, token.id, by=by)
        return NewSecret(token, secret)

    def tokens(self, name: str | None = None) -> tuple[Token, ...]:
        """The tokens of an account, or of all, the oldest first."""
        query = sa.select(tokens).order_by(tokens.c.created_at, tokens.c.digest)
        if name is not None:
            query = query.where(tokens.c.account == name)
        with self.database.reading() as connection:
            return tuple(_token_in(row) for row in connection.execute(query).mappings())

    def revoke(self, token_id: str, *, account: str | None = None, by: str | None = None) -> Token:
        """Make a token useless; only one of this account, if one is named."""
        query = sa.select(tokens).where(tokens.c.digest.startswith(token_id, autoescape=True))
        if account is not None:
            query = query.where(tokens.c.account == account)
        with self.database.writing() as connection:
            found = connection.execute(query.limit(2)).mappings().all()
            if len(token_id) < 8 or len(found) != 1:
                raise ConfigError(
                    token_id or "TOKEN", "no such token", "`firecircle accounts list` shows them"
                )
            connection.execute(sa.delete(tokens).where(tokens.c.digest == found[0]["digest"]))
            token = _token_in(found[0])
            record_action(connection, "token revoked", token.account, token.id, by=by)
            return token

    def with_token(self, secret: str) -> Account | None:
        """Whose token this is."""
        query = sa.select(*_ACCOUNT).join(tokens, tokens.c.account == accounts.c.name)
        with self.database.reading() as connection:
            row = connection.execute(query.where(tokens.c.digest == _sha256(secret))).mappings().first()
        return Account(**row) if row else None


def new_password() -> str:
    """A password that nobody guesses."""
    return secrets.token_urlsafe(15)


_ACCOUNT = tuple(accounts.c[name] for name in Account.model_fields)


def _account(connection: Connection, name: str) -> Account:
    query = sa.select(*_ACCOUNT).where(accounts.c.name == storable(name))
    row = connection.execute(query).mappings().first()
    if row is None:
        raise ConfigError(name or "name", "no such account", "`firecircle accounts list` shows them")
    return Account(**row)


def _admins(connection: Connection) -> int:
    query = sa.select(sa.func.count()).select_from(accounts).where(accounts.c.role == "admin")
    return int(connection.execute(query).scalar_one())


def _token_in(row: sa.RowMapping) -> Token:
    return Token(id=row["digest"][:12], **{name: row[name] for name in ("account", "note", "created_at")})


def _role(role: str) -> Role:
    if role not in ROLES:
        raise ConfigError("role", f"{role!r} is none", f"one of {', '.join(ROLES)}")
    return role


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _digest_of(password: str) -> str:
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise ConfigError("password", f"{SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    salt = secrets.token_bytes(16)
    digest = _scrypt(password, salt, _COST, _BLOCK, _PARALLEL)
    return f"scrypt${_COST}${_BLOCK}${_PARALLEL}${salt.hex()}${digest.hex()}"


def _nobodys_digest() -> str:
    return f"scrypt${_COST}${_BLOCK}${_PARALLEL}${'00' * 16}${'00' * 32}"


def _fits(password: str, kept: str) -> bool:
    _, cost, block, parallel, salt, digest = kept.split("$")
    given = _scrypt(
        password[: LONGEST_PASSWORD + 1], bytes.fromhex(salt), int(cost), int(block), int(parallel)
    )
    return hmac.compare_digest(given, bytes.fromhex(digest))


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    with _hashing:
        return hashlib.scrypt(
            password.encode(errors="surrogatepass"),
            salt=salt,
            n=cost,
            r=block,
            p=parallel,
            maxmem=_MOST_MEMORY,
            dklen=32,
        )
