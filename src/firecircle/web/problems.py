"""What a caller is told when something is wrong: problem+json from the API, a plain page elsewhere."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.errors import ConfigError, EvaluationError, FireCircleError, StoreError, UnknownModelError
from firecircle.shapes import Shape, Text, config_error
from firecircle.telling.safe_text import with_codes
from firecircle.verdict import SHOWN, VerdictWord

MEDIA_TYPE = "application/problem+json"


class Judged(Shape):
    """A verdict that was reached although it could not be kept."""

    verdict: VerdictWord
    alarm: bool
    falsehood: float
    decided_by: Text

    @property
    def words(self) -> str:
        """The same in words."""
        return f"{SHOWN[self.verdict]}, F {self.falsehood:.3g} by {self.decided_by}"


class Problem(Shape):
    """What went wrong with a request (RFC 9457)."""

    type: Text = "about:blank"
    title: Text
    status: int
    detail: Text
    verdict: Judged | None = None
    """Of a judgement that could not be kept."""


class RequestError(Exception):
    """Raised anywhere while a request is answered: a status and one line that names the way out."""

    def __init__(
        self,
        status: int,
        detail: str,
        headers: dict[str, str] | None = None,
        verdict: Judged | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.verdict = verdict


def refusal_of(error: Exception) -> RequestError:
    """Any error as a refusal; one that nobody foresaw tells nothing of the inside."""
    match error:
        case RequestError():
            return error
        case HTTPException():
            return RequestError(error.status_code, str(error.detail), dict(error.headers or {}))
        case StoreError():
            return RequestError(503, str(error))
        case UnknownModelError():
            return RequestError(422, str(error.without_code()))
        case ConfigError():
            return RequestError(422, str(error))
        case EvaluationError() | FireCircleError():
            return RequestError(502, str(error))
        case _:
            return RequestError(500, "this is a bug in firecircle; see the terminal it runs in")


def invalid(error: ValidationError, subject: str) -> RequestError:
    """A request whose shape is wrong."""
    wrong = config_error(error, with_value=False)
    return RequestError(422, str(wrong if wrong.field else wrong.renamed(subject)))


def problem_response(refusal: RequestError) -> Response:
    """The refusal as problem+json."""
    problem = Problem(
        title=title_of(refusal.status),
        status=refusal.status,
        detail=refusal.detail,
        verdict=refusal.verdict,
    )
    return JSONResponse(
        problem.model_dump(exclude_none=True),
        status_code=refusal.status,
        media_type=MEDIA_TYPE,
        headers=refusal.headers,
    )


def title_of(status: int) -> str:
    """The name of a status."""
    return HTTPStatus(status).phrase


def wants_problem(request: Request) -> bool:
    """Whether whoever asks is a program."""
    return str(request.scope["path"]).startswith("/api/")


def plain_detail(refusal: RequestError) -> str:
    """The detail without characters that hide."""
    return with_codes(refusal.detail)
