"""The pytest plugin: the fixture `circle`, set up by `firecircle_models` and `firecircle_threshold`.

pytest loads it wherever Fire Circle is installed, so it imports nothing of Fire Circle until a test asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from firecircle.testing import Circle


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the two settings."""
    parser.addini(
        "firecircle_models", "Voices of the fixture `circle` [default: the embedded readers].", "args"
    )
    parser.addini("firecircle_threshold", "Alarm threshold [default: 0.7].")


@pytest.fixture(scope="session")
def circle(pytestconfig: pytest.Config) -> Circle:
    """Judges prompts: `circle.assert_no_alarm(prompt)`, `.assert_alarm(prompt)`, `.judge(prompt)`."""
    from firecircle.testing import Circle

    threshold = pytestconfig.getini("firecircle_threshold")
    try:
        return Circle(
            tuple(pytestconfig.getini("firecircle_models")), float(threshold) if threshold else None
        )
    except ValueError:
        raise pytest.UsageError(f"firecircle_threshold: {threshold!r} is not a number") from None
