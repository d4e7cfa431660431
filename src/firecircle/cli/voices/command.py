"""`firecircle voices`: who there is, what each brings and costs, and who could speak now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from firecircle.cli.voices.listing import HostEntry, VoiceEntry
    from firecircle.voices.hosted.prices import Rates


def voices(
    ready: Annotated[bool, typer.Option("--ready", help="Only who could speak now.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List providers and voices: lineage, roles, price, and whether they could speak now.

    Endpoints without a key are asked for their models; nobody is asked to judge. `firecircle doctor` makes
    a real call.
    """
    import asyncio
    import sys

    from firecircle.cli.output import console_on, print_json
    from firecircle.cli.voices.listing import call_the_roll
    from firecircle.settings import current_settings

    hosts, roll = asyncio.run(call_the_roll())
    if ready:
        hosts, roll = [one for one in hosts if one.state.ready], [one for one in roll if one.ready]
    source = current_settings().source
    if as_json:
        print_json(
            {
                "settings": str(source) if source else None,
                "providers": [_host_document(host) for host in hosts],
                "voices": [_voice_document(voice) for voice in roll],
            }
        )
        return 0
    console = console_on(sys.stdout)
    if source and console.is_terminal:
        console.print(f"settings: {source}")
    _show_hosts(console, hosts)
    _show_voices(console, roll)
    return 0


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
    from dataclasses import asdict

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


def _show_voices(console: Console, roll: Sequence[VoiceEntry]) -> None:
    from rich.text import Text

    from firecircle.cli.output import print_line, section
    from firecircle.cli.printable import printable_line

    for voice in roll:
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
