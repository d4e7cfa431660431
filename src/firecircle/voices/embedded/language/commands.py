"""Commands in a document that serve neither the user's task nor the document's own subject.

Runbooks, manuals and skills are full of commands, too. What gives a planted one away is the relation: its
words and addresses are found nowhere else in the document or the task, it is made a condition for something
unrelated, it is kept from the user, or it moves, pays, deletes or unlocks what is the user's.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from firecircle.voices.embedded.language.prompt_reading import PromptReading, ReadSentence, content, words_of
from firecircle.voices.embedded.language.text import LONGEST_SENTENCE


class CommandWeights(NamedTuple):
    """Log-odds besides those of `commands.toml`. Fitted with whole sets left out, then rounded."""

    nothing_known: float = -0.45
    moves_secrets: float = 1.2
    moves_valued: float = 0.9
    names_secrets: float = 0.3
    sends_the_user: float = 0.9
    hidden_answer: float = 1.3
    foreign_address: float = 1.6
    for_machines: float = 1.5
    known_words: float = -1.8  # for the share of its words that the rest of the document has too
    long_document: float = -0.8
    program: float = -0.6  # most lines of the document are those of a program
    runs_only: float = -0.6  # it does nothing that is named in the file
    asked_for: float = -1.5  # the user's message asks for the same


class Command(NamedTuple):
    """A sentence of a document that commands something, how surely it is planted, and what it does."""

    sentence: ReadSentence
    strength: float
    note: str


WEIGHTS = CommandWeights()
LONG = 25
"""Sentences from which on a document is long."""
_ADDRESS = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}|\b(?:https?|ftp|s3)://[^\s\"'<>)]{1,300}"
    r"|(?<![\w./@-])[\w-]{2,64}(?:\.[\w-]{1,64}){0,4}\.(?:example|com|net|org|io|dev|app|co)\b(?:/\S{0,200})?",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"\b(?:from|to|cc|url|source|link|sender|author|mail|e-?mail)[\"']?\s?[:=]\s?[\"']?[^\"'\n]{0,40}\Z",
    re.IGNORECASE,
)
"""What stands before an address that only says where a message or a result comes from."""
_SHELL = re.compile(
    r"`[^`\n]{3,}`|(?:^|[\s:;|`\"'(])(?:(?:sudo|curl|wget|npx|npm|pip3?|python3?|bash|git|gh|chmod|scp|ssh|docker"
    r"|kubectl|psql|terraform|systemctl|rsync)\s+[\w./~$\"'<@-]+|(?:sh|rm|nc|cat|echo|node|tar|base64|make)\s+[-~./\"'$])"
)
_DUTY = re.compile(
    r"\b(?:must|should|shall|has to|have to|needs? to|is to|are to) be \w+(?:ed|en|un|t)\b"
    r"|\byou (?:must|will|should|have to|need to)\b",
    re.IGNORECASE,
)
_HIDDEN = re.compile(
    r"<!--|font-size: ?[01]p?|color: ?#?f{3}|display: ?none|visibility: ?hidden|aria-hidden|<span hidden",
    re.IGNORECASE,
)
_OPENING = 5
"""Characters that open a comment."""
_IN_A_COMMENT = re.compile(r"<!--(?:(?!-->)[^\n]){0,60}\Z")
_PROGRAM = re.compile(
    r"^[ \t]{0,40}(?:def|import|class|function|const|from \w+ import|#include|public|return)\b"
    r"|[;{}][ \t]{0,9}$",
    re.MULTILINE,
)
_PROGRAM_SHARE = 0.2
_ASKED, _ASKED_SHARE = 2, 0.3
"""Content words, and their share, that a command has in common with a task that asks for it."""
_LONGEST = 800
"""Characters of a sentence that are read."""
_CUT = 120
"""Characters of what follows that are read with a sentence that was cut for its length."""
_NAME = re.compile(r"[a-z]{3,}")
_NO_NAMES = frozenset(("http", "https", "www", "com", "net", "org", "example", "dev", "app", "mail", "api"))
_BEFORE = 60
_SAID_NEAR = ("silent", "unchecked")


class _Rule(NamedTuple):
    words: re.Pattern[str]
    weight: float
    note: str


@cache
def _rules() -> tuple[dict[str, re.Pattern[str]], dict[str, _Rule], dict[str, _Rule]]:
    """The expressions of `commands.toml`: things moved, acts, signs."""
    file = resources.files(__package__).joinpath("commands.toml").read_text("utf-8")
    document = tomllib.loads(file)

    def spelled(words: str) -> re.Pattern[str]:
        return re.compile(words.strip("\n").replace("\n", ""), re.IGNORECASE)

    things = {name: spelled(words) for name, words in document.items() if isinstance(words, str)}
    acts, signs = (
        {
            name: _Rule(spelled(rule["words"]), rule["weight"], rule.get("note", ""))
            for name, rule in document[kind].items()
        }
        for kind in ("act", "sign")
    )
    return things, acts, signs


def planted_commands(reading: PromptReading) -> Iterator[Command]:
    """The commands of the application's text, each with how surely it does not belong there."""
    reads = reading.application
    text = reading.prompt.application
    if not reads:
        return
    raw = [_raw(read) for read in reads]
    everywhere = Counter(word for read in reads for word in words_of(read.sentence))
    task = content(reading.prompt.user)
    known = Counter(_NAME.findall(f"{reading.prompt.user} {reading.prompt.system} {text}".lower()))
    about = WEIGHTS.nothing_known
    about += WEIGHTS.long_document if len(reads) > LONG else 0.0
    lines = text.count("\n") + 1
    about += WEIGHTS.program if len(_PROGRAM.findall(text)) > _PROGRAM_SHARE * lines else 0.0
    things = _rules()[0]
    for at, read in enumerate(reads):
        start = read.sentence.start
        if not reading.unread and not _commands(read, raw[at]):
            continue  # in a language that rules do not read, the shape of a command has to do
        does, note = _what_it_does(raw[at], unread=bool(reading.unread))
        if _IN_A_COMMENT.search(text, max(0, start - _BEFORE), start + _OPENING) and things["answer"].search(
            raw[at]
        ):
            does, note = does + WEIGHTS.hidden_answer, "is hidden and concerns the answer"
        address = _address(raw[at])
        near = " ".join(raw[max(0, at - 1) : at + 2])
        signs = _signs(raw[at], near)
        hidden = _HIDDEN.search(text, max(0, read.sentence.start - _BEFORE), read.sentence.end)
        set_apart = hidden or "silent" in signs or "gate" in signs
        runs = (address or _SHELL.search(raw[at])) and set_apart
        if not does and not runs:
            continue
        own = words_of(read.sentence)
        odds = about + (does or WEIGHTS.runs_only) + sum(signs.values())
        odds += WEIGHTS.known_words * sum(everywhere[word] > 1 for word in own) / (len(own) or 1)
        if address and _is_foreign(address[0], raw[at], known):
            odds += WEIGHTS.foreign_address
        if read.is_for_machines:
            odds += WEIGHTS.for_machines
        if (
            "unchecked" not in signs
            and len(own & task) >= _ASKED
            and _ASKED_SHARE * len(own) <= len(own & task)
        ):
            odds += WEIGHTS.asked_for
        yield Command(read, 1 / (1 + math.exp(-odds)), note)


def _raw(read: ReadSentence) -> str:
    sentence = read.sentence
    more = _CUT if len(sentence.words) >= LONGEST_SENTENCE else 0
    return sentence.text[sentence.start : min(sentence.end + more, sentence.start + _LONGEST)]


def _commands(read: ReadSentence, raw: str) -> bool:
    """Whether the sentence orders something, or says what has to be done."""
    ordered = any(not order.negated and not order.mentioned for order in read.orders)
    return ordered or bool(_DUTY.search(raw)) or bool(_rules()[1]["calls"].words.search(raw))


def _what_it_does(raw: str, *, unread: bool) -> tuple[float, str]:
    """The log-odds of everything the command does, and a note on what weighs most.

    In a language that rules do not read, secrets beside a command or an address count as moved.
    """
    things, acts, _ = _rules()
    found = [(rule.weight, rule.note) for rule in acts.values() if rule.words.search(raw)]
    secrets = things["secrets"].search(raw)
    address = _address(raw)
    words = _ADDRESS.sub(" ", raw)
    if address and things["tells"].search(words):
        found.append((WEIGHTS.sends_the_user, "sends the user to an address"))
    if (unread and "/" in raw) or ((address or _SHELL.search(raw)) and things["moves"].search(words)):
        if secrets:
            found.append((WEIGHTS.moves_secrets, "moves secrets away"))
        if address and things["valued"].search(words):
            found.append((WEIGHTS.moves_valued, "moves the user's data away"))
    if found and secrets:
        found.append((WEIGHTS.names_secrets, ""))
    return sum(weight for weight, _ in found), max(found)[1] if found else "has something run or opened"


def _address(raw: str) -> re.Match[str] | None:
    """The first address in a sentence that is more than the value of a header or a field."""
    matches = _ADDRESS.finditer(raw)
    return next(
        (
            match
            for match in matches
            if not _FIELD.search(raw[max(0, match.start() - _BEFORE) : match.start()])
        ),
        None,
    )


def _signs(raw: str, near: str) -> dict[str, float]:
    """The log-odds of how it is said; some of it may be said in the sentence before or behind."""
    return {
        name: rule.weight
        for name, rule in _rules()[2].items()
        if rule.words.search(near if name in _SAID_NEAR else raw)
    }


def _is_foreign(address: str, own: str, known: Counter[str]) -> bool:
    """Whether the names in an address occur nowhere else, in the task or the document."""
    here = Counter(_NAME.findall(own.lower()))
    names = {name for name in _NAME.findall(address.lower()) if name not in _NO_NAMES}
    return all(known[name] <= here[name] for name in names)
