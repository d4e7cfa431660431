"""Commands and options of the last release that have another form now. They work for one release more.

Each line says what is read instead; the help shows only today's form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("scan",): ("batch",),
    ("circles", "prune"): ("circles", "delete"),
    ("lab", "resume"): ("lab", "run"),
    ("lab", "estimate"): ("lab", "run", "--dry-run"),
    ("lab", "compare"): ("compare",),
    ("lab", "list"): ("lab", "report"),
    ("rotation", "verify"): ("rotation", "show"),
    ("rotation", "pairs"): ("rotation", "show", "--pairs"),
    ("bank", "search"): ("bank", "list"),
}
"""The words a command line began with, and those it begins with now."""

_SET = {
    "--reserves": "--set=reserves=",
    "--no-quorum": "--set=enforce_quorum=false",
    "--alarm-rule": "--set=alarm_rule=",
    "--strict": "--set=failure_mode=strict",
    "--chair-prompt": "--set=empty_chair_prompt_path=",
    "--domain": "--set=decision_domain=",
    "--budget-tokens": "--set=budget_tokens=",
    "--max-tokens": "--set=max_tokens=",
    "--provider": "--set=provider=",
    "--temperature": "--set=temperature=",
    "--timeout": "--set=timeout_seconds=",
    "--round-timeout": "--set=timeout_per_round=",
}
_RARE = {
    **{f"--{name}": f"--where={name}=" for name in ("until", "voice", "outcome", "mode", "status")},
    "--in-run": "--where=in_run=yes",
    "--not-in-run": "--where=in_run=no",
    "--reviewed": "--where=reviewed=yes",
    "--not-reviewed": "--where=reviewed=no",
}
_WHERE = {
    **_RARE,
    **{
        f"--{name}": f"--where={name}="
        for name in ("since", "verdict", "pattern", "label", "run", "batch", "text")
    },
    "--alarm": "--where=alarm=yes",
    "--no-alarm": "--where=alarm=no",
}
OPTIONS: Mapping[tuple[str, ...], Mapping[str, str]] = {
    ("evaluate",): {
        **_SET,
        "--match-expertise": "--rotate=match-expertise",
        "--affinity": "--rotate=affinity",
        "--shadow": "--rotate=shadow",
    },
    ("batch",): {**_SET, "--batch-name": "--name="},
    ("circles", "list"): _RARE,
    ("circles", "export"): _WHERE,
    ("circles", "prune"): {**_WHERE, "--before": "--where=until="},
    ("bank", "learn"): _WHERE,
    ("bank", "search"): {"--most": "--limit="},
    ("blindspots",): _WHERE,
    ("scan",): {
        "--budget": "--budget-usd=",
        "--budget-tokens": "--set=budget_tokens=",
        "--shard-rows": "--part-rows=",
        "--neural": "--offline",
    },
}
"""For each command: an option, and what is read instead; where that ends in =, the value follows."""


def in_todays_words(arguments: Sequence[str]) -> list[str]:
    """The command line with today's commands and options in place of retired ones."""
    words = _of_a_batch(list(arguments))
    for command, options in OPTIONS.items():
        if tuple(words[: len(command)]) == command:
            words = [*command, *_rename(words[len(command) :], options)]
    for old, new in COMMANDS.items():
        if tuple(words[: len(old)]) == old:
            return [*new, *words[len(old) :]]
    return words


def _of_a_batch(words: list[str]) -> list[str]:
    """`evaluate --batch FILE` is `batch FILE`."""
    if words[:1] != ["evaluate"]:
        return words
    for place, word in enumerate(words):
        if word == "--":
            break
        if word.startswith("--batch="):
            return ["batch", word.partition("=")[2], *words[1:place], *words[place + 1 :]]
        if word == "--batch" and place + 1 < len(words):
            return ["batch", words[place + 1], *words[1:place], *words[place + 2 :]]
    return words


def _rename(words: Sequence[str], options: Mapping[str, str]) -> list[str]:
    renamed: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            return [*renamed, word, *left]
        name, equals, value = word.partition("=")
        new = options.get(name)
        if new is None or (equals and not new.endswith("=")):
            renamed.append(word)
        elif not new.endswith("="):
            renamed.append(new)
        elif equals:
            renamed.append(new + value)
        else:
            following = next(left, None)
            renamed.append(word if following is None else new + following)
    return renamed
