"""Options that several commands share, each declared once: where the store is, which circles, which files."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from types import NoneType
from typing import IO, TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from firecircle.circle.rules import DECIDING, AlarmRule
from firecircle.errors import ConfigError
from firecircle.files import leads_out
from firecircle.names import CircleStatus, Focus, ModeName
from firecircle.verdict import VerdictWord

if TYPE_CHECKING:
    from firecircle.request import JudgingRequest
    from firecircle.store.circles import CircleStore
    from firecircle.store.finding import Filters

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH|URL",
        help="The store: a SQLite file or postgresql:// URL. Default: FIRECIRCLE_STORE, else your own file.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UNSETTABLE = ("api_key", "enabled", "families", "measured_errors")
"""Fields of a configuration that no command line may set."""
JsonForm = Literal["compact", "full"]
ResultAsJson = Annotated[
    JsonForm | None,
    typer.Option(
        "--json",
        help="Print JSON: --json the verdict in short, the same fields in every mode; --json=full the whole"
        " recording, which `replay` and `circles import` take.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print what every voice said in every round.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
PatternType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only this pattern type.")]
THRESHOLD = typer.Option(metavar="F", min=0, max=1, help="Alarm threshold.")
Threshold = Annotated[float | None, THRESHOLD]
AlarmRuleOption = Annotated[
    AlarmRule | None,
    typer.Option(
        "--alarm-rule",
        help="What raises the alarm: "
        + "; ".join(f"{name}, {rule.phrase}" for name, rule in DECIDING.items())
        + ".",
    ),
]
BudgetUsd = Annotated[float | None, typer.Option(metavar="USD", help="Stop before more than this is spent.")]
MatchExpertise = Annotated[
    bool, typer.Option("--match-expertise", help="Let voices that fit the domain come up sooner.")
]
HeedAffinity = Annotated[
    bool, typer.Option("--affinity", help="Let voices that complement those already drawn come up sooner.")
]
SOURCE = "text, @file, or - for standard input"
MostListed = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number to list.")]
ExportFile = Annotated[str, typer.Argument(metavar="FILE", help="Output file; - for standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is already there.")]


class ResultCommand(TyperCommand):
    """A command whose `--json` may stand alone and is the short form then."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What the user wrote, with the form of a bare `--json` put in."""
        options = args[: args.index("--")] if "--" in args else args
        spelled = ["--json=compact" if word == "--json" else word for word in options]
        return super().parse_args(ctx, [*spelled, *args[len(options) :]])


def with_options(declaration: type) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Unpack a dataclass of options into a command; a field without a declared option is none of them.

    In the command's help they stand where the command has its parameter of that type.
    """
    options = _options_in(declaration)

    def unpack(command: Callable[..., int]) -> Callable[..., int]:
        parameters = list(inspect.signature(command, eval_str=True).parameters.values())
        (place,) = (at for at, parameter in enumerate(parameters) if parameter.annotation is declaration)
        packed = parameters[place].name
        parameters[place : place + 1] = options

        @functools.wraps(command)
        def unpacked(**given: Any) -> int:
            values = {option.name: given.pop(option.name) for option in options}
            return command(**given, **{packed: declaration(**values)})

        vars(unpacked)["__signature__"] = inspect.Signature(parameters, return_annotation=int)
        return unpacked

    return unpack


@functools.cache
def _options_in(declaration: type) -> tuple[inspect.Parameter, ...]:
    hints = get_type_hints(declaration, include_extras=True)
    return tuple(
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(declaration)
        if get_origin(hints[field.name]) is Annotated
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingOptions:
    """Who judges, how, for how much, and where that is kept: of one prompt or of many."""

    system: Annotated[str | None, typer.Option(metavar="TEXT", help=f"The operator's text: {SOURCE}.")] = None
    application: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The application's text, such as documents and tool results.",
        ),
    ] = None
    turns: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='Earlier turns: text or @file with [{"role": ..., "content": ...}]; [] for a first turn.',
        ),
    ] = None
    turn: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of this turn, if the earlier ones are unknown; 1 says of a whole batch that nothing"
            " came before.",
        ),
    ] = None
    models: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C",
            help="Voices that judge; repeat or separate by commas. Default: hosted ones if a key is set,"
            " else the embedded readers.",
        ),
    ] = None
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Use the built-in readers only; nothing leaves this machine.",
        ),
    ] = False
    mode: Annotated[
        ModeName,
        typer.Option(help="One voice, several apart, or several in dialogue."),
    ] = "fire_circle"
    focus: Annotated[
        Focus | None,
        typer.Option(help="Judge one layer, the others as context."),
    ] = None
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4, help="Maximum number of rounds."),
    ] = None
    threshold: Threshold = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Make the circle repeatable.")] = None
    budget_usd: BudgetUsd = None
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Any other setting of a circle, such as reserves=A,B, temperature=none or"
            " failure_mode=strict; repeat for more.",
        ),
    ] = None
    save: Annotated[
        bool | None,
        typer.Option(
            "--save/--no-save",
            help="Keep what was asked and said, for `firecircle circles` to find again. Default: keep.",
            show_default=False,
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="True label of the prompt, such as attack or benign; saved with it."
        ),
    ] = None
    store: StoreOption = None
    bank: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=1,
            help="Single and parallel modes: show the voices the K most relevant patterns of the bank.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Send nothing; print calls, tokens and price instead."),
    ] = False

    @property
    def asked(self) -> JudgingRequest:
        """The request that these options make; what they leave out is decided by settings and defaults."""
        from firecircle.circle.config import FireCircleConfig
        from firecircle.cli.trouble import JUDGING_OPTIONS
        from firecircle.names import EvaluationMode
        from firecircle.request import JudgingRequest

        settings = {
            "models": names_in(self.models or (), "--models") or None,
            "focus": self.focus,
            "seed": self.seed,
            "alarm_threshold": self.threshold,
            "max_rounds": self.rounds,
            "budget_usd": self.budget_usd,
        }
        for name, value in settings_in(self.set or ()).items():
            if settings.get(name) is not None:
                raise ConfigError(JUDGING_OPTIONS[name], f"given twice, also as --set {name}", "keep one")
            settings[name] = value
        written = {name: f"--set {name}" for name in FireCircleConfig.model_fields} | JUDGING_OPTIONS
        return JudgingRequest(EvaluationMode(self.mode), settings, written=written, completes=True)


def settings_in(written: Sequence[str]) -> dict[str, Any]:
    """The fields of a circle's configuration that `--set` names; their values are checked by the model."""
    from firecircle.circle.config import FireCircleConfig
    from firecircle.request import DECLARED_ELSEWHERE

    settings: dict[str, Any] = {}
    for pair in written:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise ConfigError(
                "--set", f"{pair!r} is not a setting", "write FIELD=VALUE, such as max_rounds=2"
            )
        if name in DECLARED_ELSEWHERE:
            raise ConfigError(f"--set {name}", "cannot be said here", DECLARED_ELSEWHERE[name])
        field = FireCircleConfig.model_fields.get(name)
        settable = [known for known in FireCircleConfig.model_fields if known not in UNSETTABLE]
        if field is None or name not in settable:
            near = difflib.get_close_matches(name, settable, 1)
            known = f"did you mean {near[0]}?" if near else f"the settings are {', '.join(settable)}"
            raise ConfigError(f"--set {name}", "no such setting", known)
        is_list = str(field.annotation).startswith("tuple[")
        if name in settings and not is_list:
            raise ConfigError(f"--set {name}", "given twice", "keep one")
        if value.startswith(("{", "[")):
            try:
                settings[name] = json.loads(value)
            except ValueError as wrong:
                raise ConfigError(f"--set {name}", f"this is not JSON: {wrong}") from None
        elif is_list:
            settings[name] = (*settings.get(name, ()), *names_in([value], f"--set {name}"))
        else:
            settings[name] = _convert(field.annotation, value)
    return settings


def _convert(annotation: Any, value: str) -> Any:
    """The text as the type of its field; one that does not fit stays, and the configuration refuses it."""
    from pydantic import TypeAdapter, ValidationError

    with suppress(ValidationError):
        return TypeAdapter(annotation).validate_python(value)
    return value


Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="FIELD=VALUE",
        help="Only circles for which that holds; repeat for more. Fields: since and until (2026-11-01 or 7d),"
        " alarm, in_run and reviewed (yes or no), verdict, pattern, voice, label, run, batch, mode, status,"
        " text, outcome (right, wrong, missed or false_alarm).",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """Which circles a command is about; all that are given must hold."""

    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Begun at or after: 2026-11-01, 2026-11-01T12:00, or 7d, 12h ago."),
    ] = None
    alarm: Annotated[
        bool | None, typer.Option("--alarm/--no-alarm", help="Only alarms, or only verdicts without one.")
    ] = None
    verdict: Annotated[VerdictWord | None, typer.Option(help="With this verdict.")] = None
    pattern: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="With an agreed pattern of this type, such as role_confusion."),
    ] = None
    label: Annotated[
        str | None, typer.Option(metavar="LABEL", help="With this label; attack also finds attack:TYPE.")
    ] = None
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="Of this run: its id, the beginning of it, its folder, or last."
        ),
    ] = None
    batch: Annotated[
        str | None, typer.Option("--batch", metavar="NAME", help="Of the batch with this name.")
    ] = None
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="WORDS",
            help='Only circles with these words in prompt or answers; "words in quotes" are one phrase.',
        ),
    ] = None
    # Without an option of their own: `--where` says these.
    until: str | None = None
    voice: str | None = None
    in_run: bool | None = None
    outcome: Literal["right", "wrong", "missed", "false_alarm"] | None = None
    reviewed: bool | None = None
    mode: ModeName | None = None
    status: CircleStatus | None = None

    def narrowed(self, where: Sequence[str] | None) -> FilterOptions:
        """The same with what `--where` says."""
        hints = get_type_hints(FilterOptions)
        said: dict[str, Any] = {}
        for pair in where or ():
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not equals or name not in hints:
                known = ", ".join(field.name for field in fields(self))
                raise ConfigError(
                    "--where", f"{pair!r} is not a filter", f"write FIELD=VALUE; fields: {known}"
                )
            if name in said or getattr(self, name) is not None:
                raise ConfigError(f"--where {name}", "given twice", "keep one")
            said[name] = _filter_value(
                name, value, [kind for kind in get_args(hints[name]) if kind is not NoneType]
            )
        return replace(self, **said)

    def filters(self, store: str | None) -> Filters:
        """The filters these options ask for; `store` is where the circles are, if it was named."""
        from firecircle.store.finding import Filters

        if self.run is not None and self.in_run is False:
            raise ConfigError("--where in_run", "leaves out what run asks for", "leave one of them out")
        return Filters(
            since=None if self.since is None else moment(self.since, "--since"),
            until=None if self.until is None else moment(self.until, "--until"),
            alarm=self.alarm,
            verdict=self.verdict,
            pattern=None if self.pattern is None else pattern_type(self.pattern),
            voice=self.voice,
            label=self.label,
            run_id=None if self.run is None else run_id(self.run, store),
            in_run=self.in_run,
            outcome=self.outcome,
            reviewed=self.reviewed,
            batch=self.batch,
            mode=self.mode,
            status=self.status,
            text=self.text,
        )

    def circles_that_teach(self, store: str | None) -> Filters:
        """The same for dialogues to learn from. Circles of runs only where a run, or `in_run`, is asked for:
        the arms of a run judge the same prompts again and again."""
        in_run = None if self.run is not None else bool(self.in_run)
        return self.filters(store).model_copy(update={"in_run": in_run, "mode": "fire_circle"})


def _filter_value(name: str, value: str, kinds: Sequence[Any]) -> str | bool:
    words = [word for kind in kinds for word in get_args(kind)]
    if bool in kinds:
        if value.lower() in ("yes", "true", "1", "no", "false", "0"):
            return value.lower() in ("yes", "true", "1")
        raise ConfigError(f"--where {name}", f"{value!r} is neither yes nor no")
    if words and value not in words:
        raise ConfigError(f"--where {name}", f"{value!r} is not one of {', '.join(words)}")
    if not value:
        raise ConfigError(f"--where {name}", "is empty", "write FIELD=VALUE")
    return value


def left_out_of_runs(circles: CircleStore, filters: Filters) -> int:
    """How many circles of runs would match as well, if they were not left out."""
    if filters.in_run is not False:
        return 0
    return circles.count(filters.model_copy(update={"in_run": True}))


def moment(written: str, option: str) -> float:
    """A moment in seconds since 1970: a date or time (here, unless it names its zone), or so long ago."""
    if ago := re.fullmatch(r"(\d{1,9})\s*([smhdw])", written.strip()):
        return time.time() - int(ago[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}[ago[2]]
    try:
        return datetime.fromisoformat(written.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(
            option,
            f"{written!r} is not a date",
            "write 2026-11-01, 2026-11-01T12:00 or how long ago: 7d, 12h",
        ) from None


def pattern_type(written: str) -> str:
    """The name of a pattern type, also where it is written as reports print it: false authority."""
    return re.sub(r"[\s-]+", "_", written.strip().lower())


def run_id(written: str, store: str | None) -> str:
    """The id of a run, as the lab knows it; of one whose folder is gone, if the store has circles of it."""
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    if not written.strip():  # the beginning of every id
        raise ConfigError(
            "--run", "is empty", "give the id of a run, the beginning of it, its folder, or last"
        )
    known = None
    unknown = ConfigError(
        "run",
        f"no circle belongs to {written!r}",
        "`firecircle circles list --where in_run=yes` shows which there are",
    )
    try:
        from firecircle.lab.runs.folder import find_run

        known = find_run(written).about.run_id
    except ModuleNotFoundError:
        pass  # the lab is not installed, yet its circles may have come from elsewhere
    except ConfigError as wrong:
        unknown = wrong
    if known == written:
        return written
    with open_store(store) as opened:
        if opened.circles.find(Filters(run_id=written), limit=1).circles:
            return written
    if known is None:
        raise unknown.renamed("--run")
    return known


def refuse_json_beside_export(file: str, *, as_json: bool) -> None:
    """Standard output can hold an export or a document about it, not both."""
    if as_json and file == "-":
        raise ConfigError(
            "--json", "standard output is the export already", "name a FILE or leave --json out"
        )


@contextmanager
def written_whole(file: str) -> Iterator[IO[str]]:
    """Where an export goes; a file appears, for its owner alone, when it is whole."""
    if file == "-":
        yield sys.stdout
        sys.stdout.flush()  # a reader who has left is noticed here, not when the interpreter ends
        return
    target = target_of(file)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            # A device or a pipe is written to; replacing it would take it away from everybody.
            with open(target, "w", encoding="utf-8") as special:
                yield special
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=os.path.dirname(target), prefix=".firecircle-", delete=False
        ) as half:
            try:
                yield half.file
                half.flush()
                os.fsync(half.fileno())
                os.replace(half.name, target)
            except BaseException:
                os.unlink(half.name)
                raise
    except BrokenPipeError:
        raise
    except OSError as unwritable:
        raise cannot_write(file, unwritable) from None


def cannot_write(file: str, why: Exception) -> ConfigError:
    """The error of an export that cannot be written: by the system, or by DuckDB."""
    reason = getattr(why, "strerror", None) or str(why).splitlines()[0]
    return ConfigError("FILE", f"cannot write {file}: {reason}", "name another file")


def target_of(file: str, option: str = "FILE") -> str:
    """The file that an export replaces: where a link leads to, unless that is out of the link's folder."""
    if leads_out(file):
        raise ConfigError(option, f"{file} is a link out of its folder", "name the file itself")
    return os.path.realpath(file)


def require_writable(file: str, option: str) -> None:
    """Refuse a file that cannot be written, before anybody is asked and paid."""
    folder = os.path.dirname(target_of(file, option))
    if os.path.isdir(file) or not os.path.isdir(folder):
        raise ConfigError(option, f"{file} is not a file in an existing folder", "create the folder first")
    if not os.access(folder, os.W_OK):
        raise ConfigError(option, f"the folder of {file} cannot be written", "choose another")


def refuse_to_replace(file: str, *, force: bool) -> None:
    """An export takes the place of another file only where that is asked for; a pipe or device is no file."""
    if not force and os.path.isfile(file):
        raise ConfigError("FILE", f"{file} is already there", "--force replaces it, or name another")


@contextmanager
def readable(file: str) -> Iterator[BinaryIO]:
    """Where an import comes from."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(file, "rb") as source:
            source.peek(1)  # a folder opens, but cannot be read
            yield source
    except OSError as unreadable:
        raise ConfigError(
            "FILE", f"cannot read {file}: {unreadable.strerror or unreadable}", "name another file"
        ) from None


def names_in(values: Sequence[str], option: str) -> tuple[str, ...]:
    """The names in an option that may be repeated and may hold several, separated by commas."""
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    if values and not names:
        raise ConfigError(option, "no name in it", f"write {option} a,b,c or leave it out")
    return names
