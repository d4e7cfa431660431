"""`evaluate --conversation FILE`: whole conversations, turn by turn, and what they add up to."""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext

from rich.console import Console
from rich.text import Text

from firecircle.circle.config import FireCircleConfig
from firecircle.cli.evaluate.inputs import text_of
from firecircle.cli.evaluate.storage import warn_of_unsaved
from firecircle.cli.output import VERDICT_STYLES, console_on, print_json
from firecircle.cli.printable import printable_line
from firecircle.cli.trouble import STATUS
from firecircle.conversation.arc import Conversation
from firecircle.conversation.judging import judge_conversation
from firecircle.conversation.messages import read_transcripts
from firecircle.errors import ConfigError
from firecircle.request import JudgingRequest, configure_by_file, offline_request
from firecircle.store.opening import Store
from firecircle.telling.conversation import headline, rows_of, sentences_about
from firecircle.telling.safe_text import shortened
from firecircle.verdict import WORST_FIRST

HEADINGS = ("turn", "verdict", "F", "arc", "trust", "gap", "reply")
LINE = "{:<4} {:<10} {:<5} {:<5} {:<5} {:<4} {:<11} "
SHORTEST_SAID = 24


def judge_conversations(
    file: str,
    asked: JudgingRequest,
    *,
    system: str | None,
    offline: bool,
    store: Store | None,
    as_json: bool,
) -> int:
    """Judge every conversation of a file and print what came of it; the exit status of the worst."""
    config = configure_by_file(offline_request(asked) if offline else asked).config
    if not isinstance(config, FireCircleConfig):
        raise ConfigError("--conversation", "a conversation is judged by a circle", "leave --mode out")
    transcripts = read_transcripts(file, "" if system is None else text_of("--system", system))
    console = console_on(sys.stdout)
    done: list[Conversation] = []
    with warn_of_unsaved() as unkept, store or nullcontext():
        for transcript in transcripts:
            judging = judge_conversation(transcript, config=config, store=store, on_unkept=unkept.append)
            judged = asyncio.run(judging)
            done.append(judged)
            if not as_json:
                _show(console, judged, named=len(transcripts) > 1)
    if as_json:
        documents = [judged.model_dump(mode="json") for judged in done]
        print_json(documents[0] if len(documents) == 1 else {"conversations": documents})
    return STATUS[min((judged.verdict for judged in done), key=WORST_FIRST.index)]


def _show(console: Console, judged: Conversation, *, named: bool) -> None:
    if named:
        console.print(Text(printable_line(judged.name), style="bold"))
    console.print(Text(headline(judged), style=VERDICT_STYLES[judged.verdict]))
    for sentence in sentences_about(judged, printable_line):
        console.print(Text(sentence), soft_wrap=not console.is_terminal)
    room = max(SHORTEST_SAID, console.width - len(LINE.format(*HEADINGS)))
    console.print(Text(LINE.format(*HEADINGS) + "said", style="dim"))
    for row in rows_of(judged, printable_line):
        cells = row.word, row.falsehood, row.arc, row.trust, row.gap, row.reply
        line = Text(LINE.format(f"{row.number}{'!' if row.is_due else ''}", *cells))
        line.stylize(VERDICT_STYLES[row.verdict], 5, 5 + len(row.word))
        console.print(line.append(shortened(row.said, room)), soft_wrap=True)
    console.print()
