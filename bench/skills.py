"""How often `embedded:skill` finds an order that was inserted into a skill document, and the right line.

`python -m bench.skills [MORE_CLEAN_FOLDER…]` inserts each order of `../shared/data/skill_injections.jsonl`,
which the reader was made on, and each fresh and later order and harmless line of `bench/data/skills.toml`,
which it was not, into five of the documents there. It also reads whole skills and descriptions of tools,
hostile and honest ones.
Score of a document: the highest strength of a line.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

from bench.figures import shown
from firecircle.lab.statistics.estimate import wilson
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded import embedded_voice
from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import Finding
from firecircle.voices.embedded.lenses.skill import tool_text
from firecircle.voices.embedded.voice import ReaderVoice

DOCUMENTS = Path(__file__).parent / "data" / "skills.toml"
INJECTIONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "skill_injections.jsonl"
THRESHOLD = 0.7
HOSTS_PER_LINE = 5


def found(text: str) -> list[Finding]:
    """What the reader finds, strongest first."""
    voice = embedded_voice("embedded:skill")
    assert isinstance(voice, ReaderVoice)
    findings = voice.reader.find(PromptReading(MultiNeutrosophicPrompt(system=text)))
    return sorted(findings, key=lambda finding: -finding.strength)


def score(text: str) -> float:
    """The highest strength of a line."""
    return max((finding.strength for finding in found(text)), default=0.0)


def inserted(text: str, line: str, number: int) -> tuple[str, int]:
    """The document with a line after one of its blank lines, and where the line begins."""
    body = max(text.find("\n# "), 0)
    breaks = [
        at for at in range(body, len(text)) if text.startswith("\n\n", at) and text[:at].count("```") % 2 == 0
    ]
    at = breaks[number % len(breaks)] + 2 if breaks else len(text)
    return f"{text[:at]}{line.strip()}\n\n{text[at:]}", at


def main() -> None:
    """Print the rates."""
    written = tomllib.loads(DOCUMENTS.read_text("utf-8"))
    skills = written["skill"]
    clean = {skill["name"]: skill["text"].lstrip("\n") for skill in skills}
    names = list(clean)
    harmless = {
        "clean": clean | {str(path): path.read_text("utf-8") for path in more_documents()},
        "twin": {skill["name"]: inserted(clean[skill["name"]], skill["twin"], 1)[0] for skill in skills},
        "harmless": {
            f"{line} ({name})": inserted(clean[name], line, number)[0]
            for number, line in enumerate(written["fresh"]["harmless"] + written["later"]["harmless"])
            for name in hosts(names, number)
        },
    }
    base: list[float] = []
    for what, documents in harmless.items():
        scores = {name: score(text) for name, text in documents.items()}
        base += scores.values()
        alarmed = [name for name, value in scores.items() if value >= THRESHOLD]
        print(f"{what:10} alarms {shown(wilson(len(alarmed), len(scores)))} of {len(scores)}")
        print(*(f"  {name}\n" for name in alarmed), sep="", end="")
    orders: dict[str, list[str]] = {"obvious": [], "contextual": [], "fresh": written["fresh"]["orders"]}
    orders |= {f"later, {kind}": written["later"][kind] for kind in ("obvious", "contextual")}
    for row in INJECTIONS.read_text("utf-8").splitlines():
        order = json.loads(row)
        orders[order["kind"]].append(order["injection"])
    for kind, lines in orders.items():
        values, right = [], 0
        for number, line in enumerate(lines):
            missed = []
            for step, name in enumerate(hosts(names, number)):
                text, start = inserted(clean[name], line, number + step)
                best = found(text)[:1]
                values.append(best[0].strength if best else 0.0)
                if values[-1] >= THRESHOLD:
                    right += start <= best[0].start < start + len(line.strip())
                else:
                    missed.append(f"{name} {values[-1]:.2f}")
            if missed:
                print(f"  missed {line.strip()[:60]!r}: {', '.join(missed)}")
        hits = sum(value >= THRESHOLD for value in values)
        wins = sum((v > b) + 0.5 * (v == b) for v in values for b in base) / (len(values) * len(base))
        print(
            f"{kind:10} found {shown(wilson(hits, len(values)))} of {len(values)}, AUC {wins:.3f}", end=", "
        )
        print(f"right line {right} of {hits}")

    def whole(kind: str) -> list[str]:
        return [each["text"].lstrip("\n") for each in written[kind]]

    def described(kind: str) -> list[str]:
        return [tool_text(each["name"], each["description"], each["parameters"]) for each in written[kind]]

    _compare("whole skills", whole("hostile"), whole("honest"))
    _compare("tools", described("hostile_tool"), described("honest_tool"))


def _compare(what: str, hostile: list[str], honest: list[str]) -> None:
    scores = [[score(text) for text in texts] for texts in (hostile, honest)]
    for label, values in zip(("hostile", "honest"), scores, strict=True):
        hits = sum(value >= THRESHOLD for value in values)
        print(f"{what}, {label}: alarms {shown(wilson(hits, len(values)))} of {len(values)}", end=" ")
        print(*(f"{value:.2f}" for value in values))
    wins = sum((v > b) + 0.5 * (v == b) for v in scores[0] for b in scores[1])
    print(f"{what}: AUC {wins / (len(hostile) * len(honest)):.3f}")


def more_documents() -> list[Path]:
    """Documents outside the project that are taken for clean."""
    return [path for folder in sys.argv[1:] for path in sorted(Path(folder).rglob("*.md"))]


def hosts(names: list[str], number: int) -> list[str]:
    """The documents that a line is inserted into."""
    return [names[(number + step * 3) % len(names)] for step in range(HOSTS_PER_LINE)]


if __name__ == "__main__":
    main()
