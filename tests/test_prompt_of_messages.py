"""A chat of roles and texts becomes layers by one rule, whoever brings it."""

from __future__ import annotations

from firecircle.prompt import prompt_of_messages


def test_layers_follow_the_roles_under_any_of_their_names() -> None:
    prompt = prompt_of_messages(
        [
            ("developer", "Be brief."),
            ("human", "What does the page say?"),
            ("AI", "I will look."),
            ("function", "Opening hours: nine to five."),
            ("user", "And on Sundays?"),
            ("assistant", "Closed."),
        ]
    )

    assert prompt.system == "Be brief."
    assert prompt.application == "Opening hours: nine to five."
    assert prompt.user == "And on Sundays?"
    assert [(turn.role, turn.content) for turn in prompt.turns or ()] == [
        ("user", "What does the page say?"),
        ("assistant", "I will look."),
    ]


def test_a_chat_without_a_user_knows_nothing_of_turns() -> None:
    prompt = prompt_of_messages([("system", "Be brief."), ("narrator", "It was dark.")])

    assert (prompt.system, prompt.user, prompt.turns) == ("Be brief.", "", None)


def test_a_first_message_has_no_earlier_turns() -> None:
    assert prompt_of_messages([("user", "Hello")]).turns == ()
