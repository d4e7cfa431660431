"""`firecircle voices` lists who there is, `firecircle doctor` makes a real call to each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firecircle.cli.options import AsJson, names_in
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from firecircle.cli.voices.listing import HostEntry, VoiceEntry
    from firecircle.voices.hosted.prices import Rates


def voices(
    ready: Annotated[bool, typer.Option("--ready", help="Only who could speak now.")] = False,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also list the hosted models that cannot be called here.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="What each family is today, and which models in the settings are gone (exit status 1).",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """List providers and voices: lineage, roles, price, and whether they could speak now.

    The first lines say which circle the keys, servers and weights found here make. Endpoints without a key
    are asked for their models; no voice is asked to judge. `firecircle doctor` makes a real call.
    """
    import asyncio
    import sys

    from firecircle.cli.output import console_on, print_json

    if check:
        from firecircle.cli.voices.todays_models import show_todays_models

        if ready:
            raise ConfigError("--ready", "does not go with --check", "leave one of them out")
        return show_todays_models(as_json=as_json)
    from firecircle.cli.voices.listing import can_convene, list_voices
    from firecircle.settings import current_settings

    hosts, entries = asyncio.run(list_voices())
    if ready:
        hosts = [host for host in hosts if host.state.ready]
        entries = [entry for entry in entries if entry.ready]
    source = current_settings().source
    if as_json:
        print_json(
            {
                "settings": str(source) if source else None,
                "can_convene": can_convene(hosts),
                "providers": [_host_document(host) for host in hosts],
                "voices": [_voice_document(voice) for voice in entries],
            }
        )
        return 0
    console = console_on(sys.stdout)
    for line in can_convene(hosts):
        console.print(line, soft_wrap=True)
    console.print()
    if source and console.is_terminal:
        console.print(f"settings: {source}")
    _show_hosts(console, hosts)
    folded = [] if everyone or not console.is_terminal else [entry for entry in entries if not entry.ready]
    _show_voices(console, [entry for entry in entries if entry not in folded])
    if folded:
        console.print(
            f"and {len(folded)} more, known but not ready: set the key of a provider above to hear them,"
            " see them with --all",
            style="dim",
        )
    return 0


def doctor(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="The voices to test; without any, those who judge by default."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="How long a voice may take. Default: 30, minutes for one that thinks.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The longest answer in tokens.")
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=100, help="Ask N times, and show how far the answers differ."),
    ] = 1,
    store: Annotated[
        bool, typer.Option("--store", help="Check the store instead: is it sound, what can be read?")
    ] = False,
    salvage: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --store: copy what can be read into a new SQLite store."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Ask each voice about an attack and a harmless text. Exit status 0: all are well, 1: some not, 2: error.

    A voice that does not separate the two is not well. Answers are read as in any circle: an empty, cut or
    refused one does not count. The last line is the circle that the working voices can form. A short
    call also asks an endpoint whether it gives log-probabilities. With --store, 1 means that the
    store is damaged.
    """
    if store or salvage is not None:
        from firecircle.cli.voices.checkup import check_store_up

        if not store or models:
            raise ConfigError(
                "--salvage", "goes with --store, without voices", "doctor --store --salvage FILE"
            )
        return check_store_up(salvage, as_json=as_json)
    import asyncio
    import sys

    from firecircle.catalog import require_distinct
    from firecircle.circle.base_config import EvaluationConfig
    from firecircle.cli.output import console_on, outcomes_of, print_json, print_line
    from firecircle.cli.voices.checkup import Checkup, as_line, as_section, check
    from firecircle.cli.voices.listing import proposal
    from firecircle.request import JudgingRequest, configure_by_file
    from firecircle.settings import current_settings
    from firecircle.voices.seating import with_todays_models

    names = names_in(models or (), "MODEL") or configure_by_file(JudgingRequest()).config.models
    require_distinct(names, "MODEL")
    console = console_on(sys.stdout)
    circle = current_settings().circle
    config = EvaluationConfig(
        models=names,
        **({"provider": circle["provider"]} if "provider" in circle else {}),
        timeout_seconds=timeout,
        timeout_per_round=timeout,
        max_tokens=max_tokens,
    )

    def show(_: str, checkup: Checkup) -> None:
        if as_json:
            return
        if console.is_terminal:
            console.print(as_section(checkup))
        else:
            print_line(console, as_line(checkup))

    async def examine() -> dict[str, Checkup]:
        seated = await with_todays_models(config)
        return await outcomes_of({name: check(name, seated, repeat) for name in seated.models}, show)

    checkups = asyncio.run(examine())
    if as_json:
        print_json([asdict(checkup) for checkup in checkups.values()])
    else:
        well = tuple(name for name, checkup in checkups.items() if checkup.well)
        console.print(proposal(well), soft_wrap=True)
    return 0 if all(checkup.well for checkup in checkups.values()) else 1


def _host_document(host: HostEntry) -> dict[str, Any]:
    return {
        "name": host.provider.name,
        "base_url": host.provider.base_url,
        "key_variable": host.provider.key_variable,
        "ready": host.state.ready,
        "why": host.state.why,
        "models": list(host.state.models),
    }


def _voice_document(voice: VoiceEntry) -> dict[str, Any]:
    low, high = voice.price or (None, None)
    return {
        "names": list(voice.names),
        "provider_lineage": voice.provider_lineage,
        "alignment_style": voice.alignment_style,
        "confidence": voice.confidence,
        "cognitive_roles": voice.cognitive_roles,
        "usd_per_million_tokens": {"lowest": asdict(low), "highest": asdict(high)} if low and high else None,
        "ready": voice.ready,
        "why": voice.why,
    }


def _show_hosts(console: Console, hosts: Sequence[HostEntry]) -> None:
    from rich.text import Text

    from firecircle.cli.output import print_line
    from firecircle.cli.printable import printable_line

    for host in hosts:
        why = printable_line(host.state.why, 200)
        if host.state.models:
            why += f": {printable_line(', '.join(host.state.models), 200)}"
        if not console.is_terminal:
            print_line(console, f"provider\t{host.provider.name}\t{_word(host.state.ready)}\t{why}")
            continue
        line = Text().append(f"{host.provider.name:<12}", style="bold")
        line.append(f"{_word(host.state.ready):<10}", style="green" if host.state.ready else "dim")
        console.print(line.append(why))
    if console.is_terminal:
        console.print()


def _show_voices(console: Console, entries: Sequence[VoiceEntry]) -> None:
    from rich.text import Text

    from firecircle.cli.output import print_line, section
    from firecircle.cli.printable import printable_line

    for voice in entries:
        names = printable_line(" ".join(voice.names))
        roles = ", ".join(f"{role} {share:.1f}" for role, share in voice.cognitive_roles.items())
        lineage, why = printable_line(voice.provider_lineage), printable_line(voice.why, 200)
        if not console.is_terminal:
            parts = (names, _word(voice.ready), lineage, roles, _price(voice.price), why)
            print_line(console, "voice\t" + "\t".join(parts))
            continue
        line = Text().append(names, style="bold").append("  ")
        console.print(line.append(_word(voice.ready), style="green" if voice.ready else "dim"))
        console.print(*section("", [f"{lineage}: {roles}", f"{_price(voice.price)}; {why}"]))


def _word(ready: bool) -> str:
    return "ready" if ready else "not ready"


def _price(price: tuple[Rates, Rates] | None) -> str:
    """Dollars for a million tokens in and out, of the cheapest and the dearest."""
    if price is None:
        return "price unknown"
    low, high = price
    if not high.input and not high.output:
        return "free"
    return f"{_span(low.input, high.input)} in, {_span(low.output, high.output)} out per million tokens"


def _span(low: float, high: float) -> str:
    return f"${low:g}" if low == high else f"${low:g} to ${high:g}"
