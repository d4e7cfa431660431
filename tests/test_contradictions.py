"""Contradictions in a system prompt, found without a model."""

from __future__ import annotations

import pytest

from bench.contradictions import WRITTEN, is_of
from firecircle import MultiNeutrosophicPrompt, find_contradictions

FILLER = "You are the assistant of a garden centre. Be friendly.\n"


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("direct", "Never mention delivery costs.", "When asked, mention the delivery costs."),
        ("direct", "Only discuss plants from our catalogue.", "Discuss any plants the customer brings up."),
        ("format", "Respond with valid JSON and nothing else.", "Return the list as a Markdown table."),
        ("format", "Indent code with tabs.", "Use four spaces of indentation."),
        ("numbers", "Keep replies under 80 words.", "Write at least 200 words per reply."),
        ("numbers", "Returns are accepted within 30 days.", "Returns are accepted within 14 days."),
        ("priority", "Tone takes precedence over accuracy.", "Accuracy is more important than tone."),
        ("direct", "Keep every answer brief.", "Describe each plant at length in your answer."),
        ("direct", "Ask the manager before you order seeds.", "Order seeds on your own when they run low."),
        ("direct", "Sources are not to be mentioned.", "Always name your sources."),
        ("scope", "Always add the price to every list.", "Do not add the price to lists for members."),
    ],
)
def test_each_kind_is_found_with_both_quotes(kind: str, first: str, second: str) -> None:
    (found,) = find_contradictions(f"{FILLER}\n- {first}\n- Thank the customer.\n- {second}\n")
    assert found.second is not None
    assert (found.kind, found.first.quote, found.second.quote) == (kind, first, second)
    assert found.suggestion


@pytest.mark.parametrize(
    ("kind", "text", "quote"),
    [
        ("exception", "Never close a ticket, unless you think it is right.", "Never close a ticket"),
        (
            "missing",
            "Tools:\n- `get_plant(id)`\n- `get_price(id)`\n\n# Rules\nCall `send_invoice` at the end.",
            "Call `send_invoice`",
        ),
        ("missing", "1. Greet.\n2. Ask.\n3. Follow rule 7 for pots.", "Follow rule 7"),
    ],
)
def test_what_one_passage_shows_has_no_second(kind: str, text: str, quote: str) -> None:
    (found,) = find_contradictions(text)
    assert (found.kind, found.second) == (kind, None)
    assert found.first.quote.startswith(quote)


@pytest.mark.parametrize(
    "text",
    [
        "- Never mention delivery costs.\n- Mention the delivery date.",
        "- Interns have 20 days of holiday.\n- Employees have 28 days of holiday.",
        "- Use a formal tone for letters.\n- Use a casual tone for chats.",
        "- Never delete rows in `prod`.\n- Delete old rows in `staging`.",
        "- Do not give legal advice.\n- Refer legal questions to a lawyer.",
        "- If the guest is a silver member, add one bag.\n- If the guest is a gold member, add two bags.",
        "- Ask for the size first.\n- Never name a price without asking for the size.",
        '- Good: "Always use tabs for indentation."\n- Bad: "Indent with four spaces."',
        "```\nnever use tabs for indentation\nindent with tabs\n```",
        "",
    ],
)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert find_contradictions(text) == ()


def test_a_stated_winner_is_named_and_the_file_is_not_rewritten() -> None:
    text = (
        "- Never mention prices.\n- Mention prices when asked.\n- In case of conflict, the later rule wins.\n"
    )
    (found,) = find_contradictions(MultiNeutrosophicPrompt(system=text))
    assert found.wins == "in case of conflict, the later rule wins."
    assert found.suggestion.startswith("accept")


def test_quotes_are_places_of_the_text() -> None:
    text = f"{FILLER}\nNever mention prices.\n\nMention prices when asked.\n"
    for found in find_contradictions(text):
        for passage in filter(None, (found.first, found.second)):
            assert text[passage.start : passage.end] == passage.quote


def test_prompts_that_no_rule_was_written_on_are_read_with_high_precision() -> None:
    import tomllib

    right = every = hits = annotated = 0
    for prompt in tomllib.loads(WRITTEN.read_text("utf-8"))["prompt"]:
        if prompt["part"] in ("test", "later"):
            text = prompt["text"].lstrip("\n")
            real = [pair for pair in prompt["pairs"] if pair[0] != "none"]
            findings = find_contradictions(text)
            every += len(findings)
            right += sum(any(is_of(found, text, a, b) for _, a, b in real) for found in findings)
            annotated += len(real)
            hits += sum(any(is_of(found, text, a, b) for found in findings) for _, a, b in real)
    assert right / every >= 0.8
    assert hits / annotated >= 0.5
