"""`firecircle evaluate`: judge one prompt and leave with 0 for no alarm, 1 for an alarm, 2 for trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.batch.options import BatchOptions
from firecircle.cli.options import (
    AlarmRuleOption,
    HeedAffinity,
    MatchExpertise,
    ResultAsJson,
    StoreOption,
    Threshold,
    Verbose,
    names_in,
    with_options,
)
from firecircle.errors import ConfigError
from firecircle.names import Focus, ModeName

if TYPE_CHECKING:
    pass

SOURCE = "text, @file, or - for standard input"


@with_options(BatchOptions)
def evaluate(
    *,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help=f"The user's message: {SOURCE}.")] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help=f"The operator's text: {SOURCE}.")
    ] = None,
    application: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The application's text, such as documents and tool results.",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="TEXT", help="The user's message.")] = None,
    turns: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='Earlier turns: text or @file with [{"role": ..., "content": ...}]; [] for a first turn.',
        ),
    ] = None,
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
    many: BatchOptions,
    turn: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of this turn, if the earlier ones are unknown; 1 says of a whole batch that nothing"
            " came before.",
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Remember the session here; created if missing, updated after a verdict.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C",
            help="Who judges; repeat or separate by commas. Default: hosted if OPENROUTER_API_KEY is set,"
            " else the built-in voices.",
        ),
    ] = None,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Use the built-in readers only; nothing leaves this machine.",
        ),
    ] = False,
    reserves: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Who sits in when a lost voice breaks the quorum."),
    ] = None,
    no_quorum: Annotated[
        bool,
        typer.Option("--no-quorum", help="Judge without a quorum, for experiments."),
    ] = False,
    mode: Annotated[
        ModeName,
        typer.Option(help="One voice, several apart, or several in dialogue."),
    ] = "fire_circle",
    focus: Annotated[
        Focus | None,
        typer.Option(help="Judge one layer, the others as context."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4, help="The most rounds to hold."),
    ] = None,
    threshold: Threshold = None,
    alarm_rule: AlarmRuleOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Abort at the first lost voice.")] = False,
    chair_prompt: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Your own prompt for the empty chair."),
    ] = None,
    rotate: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="Draw a circle of N from --models by who was heard least; auto follows from the prompt.",
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="D", help="The field the prompt comes from, such as finance or software."),
    ] = None,
    match_expertise: MatchExpertise = False,
    affinity: HeedAffinity = False,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Record what --rotate would draw, but keep the usual circle.")
    ] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Make the circle repeatable.")] = None,
    budget_usd: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Stop before more than this is spent."),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Stop before more tokens than this are used."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="The longest answer in tokens. Default: 1000, or 4000 for a model that thinks first.",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who answers for families and bare model names. Default: openrouter, else whose key is set.",
        ),
    ] = None,
    temperature: Annotated[
        str | None, typer.Option(metavar="T|none", help="0 to 2, or none to send none. Default: 0.7.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="For one attempt of one call. Default: 30, minutes for one that thinks."
        ),
    ] = None,
    round_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="For a round, retries included. Default: 60, minutes for one that thinks."
        ),
    ] = None,
    save: Annotated[
        bool | None,
        typer.Option(
            "--save/--no-save",
            help="Keep what was asked and said, for `firecircle circles` to find again. Default: keep.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="What the prompt really is, such as attack or benign; kept with it."
        ),
    ] = None,
    store: StoreOption = None,
    bank: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=1,
            help="Single and parallel modes: tell the voices of the K most relevant patterns in the bank.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Ask nobody; print calls, tokens and price instead."),
    ] = False,
    as_json: ResultAsJson = None,
    verbose: Verbose = False,
) -> int:
    """Judge a prompt, or many. Exit status 0: no alarm, 1: alarm, 2: error, 3: unread.

    \b
    firecircle evaluate --example temporal_inconsistency-01-attack
    firecircle evaluate --system @system.txt --user "as we agreed, ..." --turn 1
    cat message.txt | firecircle evaluate --system @system.txt --user - --json
    firecircle evaluate --system @system.txt --batch messages.csv --out results.csv

    \b
    What is not said here may stand in firecircle.toml (in this folder, in
    ~/.config/firecircle, or where FIRECIRCLE_CONFIG says):
    [circle]     who judges and how: models, max_rounds, alarm_threshold, budget_usd
                 and every other field of FireCircleConfig
    [providers]  endpoints of your own; [models], [prices], [limits] of their models
    [store]      whether verdicts are kept, and where
    """
    from firecircle.cli.evaluate.inputs import Sources, opened_session, prompt_from
    from firecircle.cli.evaluate.judging import judge
    from firecircle.cli.evaluate.request import OPTIONS, Request
    from firecircle.cli.evaluate.storage import guide_for, label_of, store_for
    from firecircle.names import EvaluationMode
    from firecircle.request import JudgingRequest, configured_by_file, offline_request

    if text is not None and user is not None:
        raise ConfigError("--user", "given twice, as an argument and as --user", "keep one")
    asked = JudgingRequest(
        EvaluationMode(mode),
        {
            "models": names_in(models or (), "--models") or None,
            "provider": provider,
            "focus": focus,
            "seed": seed,
            "alarm_threshold": threshold,
            "alarm_rule": alarm_rule,
            "max_rounds": rounds,
            "failure_mode": "strict" if strict else None,
            "reserves": names_in(reserves or (), "--reserves") or None,
            "empty_chair_prompt_path": chair_prompt,
            "decision_domain": domain,
            "enforce_quorum": False if no_quorum else None,
            "budget_usd": budget_usd,
            "budget_tokens": budget_tokens,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "timeout_seconds": timeout,
            "timeout_per_round": round_timeout,
        },
        written=OPTIONS,
        completes=True,
    )
    layer = text if text is not None else user
    if conversation is not None:
        from firecircle.cli.evaluate.conversation import judge_conversations

        of_one_prompt = {
            "TEXT": text,
            "--user": user,
            "--application": application,
            "--turns": turns,
            "--turn": turn,
            "--example": example,
            "--session": session,
            "--rotate": rotate,
            "--batch": many.batch,
            "--label": label,
            "--bank": bank,
            "--dry-run": dry_run,
        }
        for option, given in of_one_prompt.items():
            if given:
                raise ConfigError(option, "is not for a conversation", "leave it out")
        return judge_conversations(
            conversation,
            asked,
            system=system,
            offline=offline,
            store=store_for(save, store, label),
            as_json=as_json is not None,
        )
    if many.batch is not None:
        from firecircle.cli.batch.command import evaluate_batch

        of_one_prompt = {
            "TEXT": text,
            "--user": user,
            "--example": example,
            "--session": session,
            "--rotate": rotate,
            "--shadow": shadow,
            "--match-expertise": match_expertise,
            "--affinity": affinity,
            "--verbose": verbose,
            "--json=full": as_json == "full",
        }
        for option, given in of_one_prompt.items():
            if given:
                raise ConfigError(option, "is for one prompt, not for a batch", "leave it out")
        if turn not in (None, 1):
            raise ConfigError(
                "--turn",
                "of a whole batch only 1 can be said",
                "give earlier turns in a column or with --turns",
            )
        return evaluate_batch(
            many,
            asked,
            Sources(system, application, turns="[]" if turn == 1 else turns),
            offline=offline,
            keeping=None if dry_run else store_for(save, store, label, is_read=bank is not None),
            label=label,
            bank=guide_for(bank, mode, store),
            dry_run=dry_run,
            as_json=as_json is not None,
        )
    many.require_batch()
    prompt = prompt_from(Sources(system, application, layer, turns, example))
    is_read = rotate is not None or bank is not None
    keeping = None if dry_run else store_for(save, store, label, is_read=is_read)
    if rotate is not None:
        from firecircle.cli.rotation.drawing import draw_circle

        asked = draw_circle(
            asked,
            prompt,
            rotate,
            shadow=shadow,
            match_expertise=match_expertise,
            affinity=affinity,
            keep=keeping is not None,
            where=store,
        )
    elif shadow or match_expertise or affinity:
        raise ConfigError(
            "--shadow, --match-expertise, --affinity", "only a drawn circle has that", "add --rotate N"
        )
    memory = opened_session(session, turn, prompt)
    judges = configured_by_file(offline_request(asked) if offline else asked)
    changed = any(given is not None for given in (system, application, layer, turns))
    request = Request(
        prompt,
        judges.config,
        judges.seating,
        session=memory,
        session_file=session,
        example=example,
        store=keeping,
        label=label_of(label, example, changed=changed),
        bank=guide_for(bank, mode, store),
        as_json=as_json,
        verbose=verbose,
        joined=judges.joined,
    )
    if dry_run:
        from firecircle.cli.evaluate.dry_run import estimate

        return estimate(request)
    return judge(request)
