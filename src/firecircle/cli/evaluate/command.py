"""`firecircle evaluate`: judge one prompt and leave with 0 for no alarm, 1 for an alarm, 2 for trouble."""

from __future__ import annotations

from typing import Annotated

import typer

from firecircle.cli.options import SOURCE, JudgingOptions, ResultAsJson, Verbose, with_options
from firecircle.errors import ConfigError

ROTATION = ("match-expertise", "affinity", "shadow")
"""What `--rotate` may say besides how many."""


@with_options(JudgingOptions)
def evaluate(
    *,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help=f"The user's message: {SOURCE}.")] = None,
    user: Annotated[str | None, typer.Option(metavar="TEXT", help="The user's message.")] = None,
    example: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Start from a bundled example; `firecircle examples` lists them.",
        ),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Judge a conversation as a whole, turn by turn: JSON or JSONL, as chats are exported.",
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Remember the session here; created if missing, updated after a verdict.",
        ),
    ] = None,
    given: JudgingOptions,
    rotate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|auto[,...]",
            help="Draw a circle of N from --models by who was heard least; auto follows from the prompt. With"
            " match-expertise or affinity voices that fit the domain or each other come up sooner; with"
            " shadow the draw is only recorded.",
        ),
    ] = None,
    as_json: ResultAsJson = None,
    verbose: Verbose = False,
) -> int:
    """Judge a prompt. Exit status 0: no alarm, 1: alarm, 2: error, 3: unread.

    \b
    firecircle evaluate --example temporal_inconsistency-01-attack
    firecircle evaluate --system @system.txt --user "as we agreed, ..." --turn 1
    cat message.txt | firecircle evaluate --system @system.txt --user - --json
    firecircle evaluate "..." --set reserves=local:qwen --set failure_mode=strict

    \b
    Defaults come from firecircle.toml (in this folder, in
    ~/.config/firecircle, or named by FIRECIRCLE_CONFIG):
    [circle]     who judges and how: models, max_rounds, alarm_threshold, budget_usd
                 and every other field of FireCircleConfig
    [providers]  endpoints of your own; [models], [prices], [limits] of their models
    [store]      whether and where verdicts are saved
    """
    from firecircle.cli.evaluate.inputs import Sources, opened_session, prompt_from
    from firecircle.cli.evaluate.judging import judge
    from firecircle.cli.evaluate.request import Request, guide_for, label_of, store_for
    from firecircle.request import configure_by_file, offline_request

    if text is not None and user is not None:
        raise ConfigError("--user", "given twice, as an argument and as --user", "keep one")
    asked, layer = given.asked, text if text is not None else user
    if conversation is not None:
        from firecircle.cli.evaluate.judging import judge_conversations

        of_one_prompt = {
            "TEXT": text,
            "--user": user,
            "--application": given.application,
            "--turns": given.turns,
            "--turn": given.turn,
            "--example": example,
            "--session": session,
            "--rotate": rotate,
            "--label": given.label,
            "--bank": given.bank,
            "--dry-run": given.dry_run,
        }
        for option, value in of_one_prompt.items():
            if value:
                raise ConfigError(option, "is not for a conversation", "leave it out")
        return judge_conversations(
            conversation,
            asked,
            system=given.system,
            offline=given.offline,
            store=store_for(given.save, given.store, given.label),
            as_json=as_json is not None,
        )
    prompt = prompt_from(Sources(given.system, given.application, layer, given.turns, example))
    is_read = rotate is not None or given.bank is not None
    keeping = None if given.dry_run else store_for(given.save, given.store, given.label, is_read=is_read)
    if rotate is not None:
        from firecircle.cli.rotation import draw_circle

        count, ways = _rotation(rotate)
        asked = draw_circle(
            asked,
            prompt,
            count,
            shadow="shadow" in ways,
            match_expertise="match-expertise" in ways,
            affinity="affinity" in ways,
            keep=keeping is not None,
            where=given.store,
        )
    memory = opened_session(session, given.turn, prompt)
    judges = configure_by_file(offline_request(asked) if given.offline else asked)
    changed = any(part is not None for part in (given.system, given.application, layer, given.turns))
    request = Request(
        prompt,
        judges.config,
        judges.seating,
        session=memory,
        session_file=session,
        example=example,
        store=keeping,
        label=label_of(given.label, example, changed=changed),
        bank=guide_for(given.bank, given.mode, given.store),
        as_json=as_json,
        verbose=verbose,
        joined=judges.joined,
    )
    if given.dry_run:
        from firecircle.cli.evaluate.dry_run import estimate

        return estimate(request)
    return judge(request)


def _rotation(written: list[str]) -> tuple[str, set[str]]:
    """How many to draw, and what else the draw goes by."""
    words = [word.strip() for part in written for word in part.split(",") if word.strip()]
    counts = [word for word in words if word not in ROTATION]
    if not counts:
        raise ConfigError("--rotate", "how many are to be drawn is not said", "write --rotate N or auto")
    if len(counts) > 1:
        raise ConfigError("--rotate", f"{counts[0]} and {counts[1]}: one number is drawn", "keep one")
    return counts[0], {word for word in words if word in ROTATION}
