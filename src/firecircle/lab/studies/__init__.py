"""Ready-made plans, one question each. By default on the bundled examples with the embedded circle."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from firecircle.errors import ConfigError
from firecircle.lab.datasets.reading import BUNDLED, ENCODED, read_dataset
from firecircle.lab.datasets.record import BadRows, FieldMap
from firecircle.lab.plan import Plan, plan_of
from firecircle.lab.validation import NAMED
from firecircle.names import is_embedded
from firecircle.settings import toml_string

ENCODING = "encoding"
"""Families whose name says so are what the quorum study is about."""
ATTACKED_PROMPTS = 20
"""How many prompts the study redteam takes unless told otherwise."""
STUDIES = (
    "dialogue",
    "rivals",
    "chair",
    "gap",
    "quorum",
    "ablation",
    "guidance",
    "cost",
    "validation",
    "wording",
    "redteam",
)


def study_text(
    name: str,
    models: Sequence[str] = (),
    data: str | None = None,
    limit: int | None = None,
    *,
    fields: FieldMap | None = None,
    system: str = "",
) -> str:
    """The plan of a study as TOML, with these voices and this dataset instead of its own.

    `fields` says what the file calls things, `system` is the operator's text of records that have none.
    """
    if name not in STUDIES:
        raise ConfigError("study", f"there is no {name!r}", f"there are {', '.join(STUDIES)}")
    if name == "rivals" and all(map(is_embedded, models)):
        raise ConfigError(
            "study",
            "embedded voices do not read each other's words",
            "name hosted or local ones: --models a,b,c",
        )
    text = resources.files("firecircle.lab.studies").joinpath(f"{name}.toml").read_text("utf-8")
    path = data or (f"{BUNDLED}:{ENCODED}" if name == "quorum" else BUNDLED)
    if path.partition(":")[0] != BUNDLED:
        path = str(Path(path).expanduser().absolute())
    text += f"\n[[datasets]]\npath = {toml_string(path)}\n"
    if limit is None and name == "redteam":
        limit = ATTACKED_PROMPTS  # each is judged by some forty arms
    if limit is not None:
        text += f"sample = {limit}\n"
    if system:
        text += f"system = {toml_string(system)}\n"
    text += _choose_data(name, path, limit, fields)
    text += _fields_table(fields)
    if name == "cost" and not all(map(is_embedded, models)):
        # Only voices that cost something are worth asking second.
        text += '\n[[arms]]\nname = "cascade"\nkind = "cascade"\n'
    if models:
        text += f"\n[circle]\nmodels = {_toml_list(models)}\n"
    return text


def _choose_data(name: str, path: str, limit: int | None, fields: FieldMap | None) -> str:
    """Which prompts of the data a study is about, where its question names some.

    The quorum's hypothesis is about encoding attacks; the validation names two prompts, which a sample might
    leave out.
    """
    if name == "quorum" and path.partition(":")[0] != BUNDLED:
        known = {record.family for record in read_dataset(path, fields, BadRows()) if record.family}
        families = sorted(family for family in known if ENCODING in family.casefold())
        return f"families = {_toml_list(families)}\n" if families else ""
    if name == "validation" and limit is not None:
        named = [record.id for record in read_dataset(path, fields, BadRows()) if record.id.endswith(NAMED)]
        return f"keep = {_toml_list(named)}\n" if named else ""
    return ""


def _fields_table(fields: FieldMap | None) -> str:
    given = fields.model_dump(exclude_unset=True) if fields else {}
    if not given:
        return ""
    lines = (
        f"{name} = {toml_string(value or '') if isinstance(value, str | None) else _toml_list(value)}\n"
        for name, value in given.items()
    )
    return "\n[datasets.fields]\n" + "".join(lines)


def _toml_list(names: Sequence[str]) -> str:
    return f"[{', '.join(toml_string(name) for name in names)}]"


def study_plan(text: str, name: str) -> Plan:
    """The plan of a study."""
    return plan_of(text, f"study {name}")


def starting_plan() -> str:
    """A plan to start from, with every key explained."""
    return resources.files("firecircle.lab.studies").joinpath("start.toml").read_text("utf-8")
