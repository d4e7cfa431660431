"""The words, codes and fields in an error body.

Each provider has its own format, routers wrap those of others, and gateways send web pages.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from firecircle.voices.hosted.complaints import NO_KEY, TOO_MANY, UNPAID, Complaint
from firecircle.voices.hosted.wires.format import dicts

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MESSAGE_CHARS = 300
MAX_MESSAGE_SCANNED = 20_000
"""An answer that should be short may have megabytes."""
DEEPEST = 4
STATUS_WORDS = (
    (re.compile(r"rate[ _-]?limit|too many requests|resource_exhausted", re.IGNORECASE), TOO_MANY),
    (re.compile(r"insufficient (balance|credit|fund)|payment required", re.IGNORECASE), UNPAID),
    (re.compile(r"invalid api key|authenticat|unauthori[sz]ed", re.IGNORECASE), NO_KEY),
    (
        re.compile(
            r"overload|unavailable|capacity|(server|api)[ _]error|internal[ _]error|timed? ?out",
            re.IGNORECASE,
        ),
        503,
    ),
)
"""The meaning of an error in a 200 answer that gives no status."""


def complaint_in(body: Any, status: int) -> Complaint:
    """The words, codes and named fields of an error body in any format."""
    parts = list(_parts(body))
    words: list[str] = []
    for part in parts:
        sentence = _words(part)
        if sentence and not any(sentence in earlier for earlier in words):
            words.append(sentence)
    codes = tuple(code for part in parts for code in _codes(part))
    flagged = any(_reasons(part) for part in parts)
    words += [f"reasons: {reasons}" for part in parts if (reasons := _reasons(part))]
    if not words and isinstance(body, dict | list) and body:
        words = [json.dumps(body)[:MAX_MESSAGE_SCANNED]]
    message = ": ".join(words)
    return Complaint(
        _status(status, message, codes),
        message,
        codes,
        tuple(path for part in parts for path in _paths(part)),
        tuple(delay for part in parts for delay in _delays(part)),
        flagged,
    )


def _parts(body: Any, depth: int = 0) -> Iterator[dict[str, Any] | str]:
    """The error objects and plain texts in a body, outermost first."""
    if isinstance(body, str):
        text = as_text(body)
        if depth and text.startswith(("{", "[")):
            try:
                body = json.loads(text)
            except (ValueError, RecursionError):
                yield text
                return
        else:
            yield text
            return
    if depth > DEEPEST:
        return
    if isinstance(body, list):
        for entry in body[:3]:
            yield from _parts(entry, depth + 1)
        return
    if not isinstance(body, dict):
        return
    inner = body.get("error")
    if isinstance(inner, dict | list) and inner:
        yield from _parts(inner, depth + 1)
    elif isinstance(inner, str) and inner.strip():
        yield {**body, "message": body.get("message") or inner, "error": None}
    elif isinstance(body.get("base_resp"), dict):
        yield from _parts(body["base_resp"], depth + 1)
    elif isinstance(body.get("message"), dict):
        yield {**body, "message": None}
        yield from _parts(body["message"], depth + 1)
    elif isinstance(body.get("errors"), list) and body["errors"]:
        yield body
        yield from _parts(body["errors"], depth + 1)
    else:
        yield body
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):
        yield from _parts(metadata["raw"], depth + 1)
    if isinstance(body.get("innererror"), dict):
        yield {**body["innererror"], "message": None}


MESSAGES = ("message", "detail", "msg", "status_msg", "error_description", "title", "Message", "error_msg")


def _words(part: dict[str, Any] | str) -> str:
    if isinstance(part, str):
        return part.strip()
    for name in MESSAGES:
        value = part.get(name)
        if isinstance(value, str) and value.strip():
            return as_text(value.strip())
        if isinstance(value, list | dict) and value:
            return _join_entries(value)
    return ""


def _join_entries(value: list[Any] | dict[str, Any]) -> str:
    """The format of FastAPI and others: a list of places and what is wrong there."""
    entries = value if isinstance(value, list) else [value]
    complaints = []
    for entry in entries[:5]:
        if isinstance(entry, dict) and isinstance(entry.get("msg") or entry.get("message"), str):
            steps = entry.get("loc")
            place = ".".join(str(step) for step in steps if step != "body") if isinstance(steps, list) else ""
            words = entry.get("msg") or entry["message"]
            complaints.append(f"{place}: {words}" if place else words)
        else:
            complaints.append(entry if isinstance(entry, str) else json.dumps(entry))
    return "; ".join(complaints)


def _codes(part: dict[str, Any] | str) -> Iterator[str]:
    if isinstance(part, str):
        return
    for name in (
        "code",
        "type",
        "status",
        "reason",
        "error_code",
        "status_code",
        "error_type",
        "limit_source",
    ):
        for holder in (part, part.get("metadata")):
            value = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                yield str(value).lower()
    for detail in dicts(part.get("details")):
        for violation in dicts(detail.get("violations")):
            yield from (str(violation[key]).lower() for key in ("quotaId", "quotaMetric") if key in violation)


def _reasons(part: dict[str, Any] | str) -> str:
    metadata = part.get("metadata") if isinstance(part, dict) else None
    reasons = metadata.get("reasons") if isinstance(metadata, dict) else None
    return ", ".join(map(str, reasons)) if isinstance(reasons, list) else ""


def _paths(part: dict[str, Any] | str) -> Iterator[str]:
    if isinstance(part, str):
        return
    if isinstance(part.get("param"), str) and part["param"]:
        yield part["param"]
    for listed in (part.get("detail"), part.get("details"), part.get("message"), part.get("errors")):
        for entry in listed if isinstance(listed, list) else ():
            place = entry.get("loc") if isinstance(entry, dict) else None
            if isinstance(place, list):
                yield ".".join(str(step) for step in place if step != "body")
    for detail in dicts(part.get("details")):
        for violation in dicts(detail.get("fieldViolations")):
            if violation.get("field"):
                yield str(violation["field"])


def _delays(part: dict[str, Any] | str) -> Iterator[str]:
    if isinstance(part, str):
        return
    for detail in dicts(part.get("details")):
        if "retryDelay" in detail:
            yield str(detail["retryDelay"])
    metadata = part.get("metadata")
    for holder in (part, metadata if isinstance(metadata, dict) else {}):
        for name in ("retry_after", "retry_after_seconds"):
            if isinstance(holder.get(name), str | int | float):
                yield str(holder[name])
    headers = metadata.get("headers") if isinstance(metadata, dict) else None
    if isinstance(headers, dict):
        yield from (str(value) for name, value in headers.items() if str(name).lower().endswith("reset"))


def _status(status: int, words: str, codes: tuple[str, ...]) -> int:
    """The HTTP status; if it is a success, the status that the error itself names or describes."""
    if not 200 <= status < 300:
        return status
    for code in codes:
        if code.isdecimal() and len(code) == 3 and code[0] in "45":
            return int(code)
    described = " ".join((words, *codes))
    return next((number for pattern, number in STATUS_WORDS if pattern.search(described)), 0)


TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
UNSEEN = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
IS_PAGE = re.compile(r"\s*(<!doctype html|<html|<head|<body|<title|<h1|<\?xml)", re.IGNORECASE)


def is_page(text: str) -> bool:
    """Whether a text is a web page."""
    return IS_PAGE.match(text) is not None


def as_text(text: str) -> str:
    """The text; for a web page its title, otherwise its first words."""
    text = text[:MAX_MESSAGE_SCANNED]
    if not is_page(text):
        return text
    import html

    named = TITLE.search(text) or HEADING.search(text)
    seen = UNSEEN.sub(" ", named[1] if named else text)
    return " ".join(html.unescape(seen).split())[:MAX_MESSAGE_CHARS]
