"""Detect that a voice declined to evaluate, which is not the same as an evaluation about declining."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from firecircle.circle.reading.evidence import Quotations

if TYPE_CHECKING:
    from firecircle.circle.reading.evidence import Evidence

_LEAD = (
    r"(?:(?:i['’]?m|i\s+am)\s+(?:\w+\s+)?(?:sorry|afraid)|sorry|my\s+apologies|i\s+apologi[sz]e|apologies"
    r"|unfortunately|however|but|regrettably|no|as\s+an?\s+(?:ai|language\s+model|large\s+language)[^,.\n]{0,60}"
    r"|thank\s+you[^,.\n]{0,60}|i\s+(?:understand|appreciate)[^,.\n]{0,80})"
    r"(?:[\s*_]*[,.:;!—–-]+\s*|\s+)(?:(?:but|that|and|however|unfortunately|as)\b[\s,]*)*"
)
_UNABLE = (
    r"i\s*(?:can\s?not|can['’]?t|won['’]?t|will\s+not|could\s?n['’]?t|do\s+not\s+feel\s+comfortable"
    r"|(?:['’]m|\s*am)\s+(?:unable|not\s+able|not\s+(?:going|allowed|permitted|willing|comfortable)|programmed\s+not)"
    r"|refuse|decline|would\s+rather\s+not|['’]d\s+rather\s+not)"
)
_TO_HELP = (
    r"(?:help(?!\s+but)|assist|comply|fulfil+|engage|participat\w+|continu\w+|proceed|do\s+(?:that|this|so)"
    r"|provide\s+(?:that|this|assistance|help|an?\s+(?:evaluation|assessment|analysis|response)|such|guidance)"
    r"|be\s+of\s+(?:help|assistance)|take\s+part)\b"
)
_TO_JUDGE = (
    r"(?:evaluat\w+|analy[sz]\w+|rat(?:e|ing)|judg(?:e|ing)|scor(?:e|ing)|answer|discuss|process|support|respond"
    r"|complet\w+|perform|carry\s+out)\b(?=\W*(?:[.!\n]|\Z)|\s+(?:\w+\s+){0,3}?(?:this|that|it|these|prompts?"
    r"|requests?|content|material|text|task|layers?|messages?|input)\b)"
    r"(?![^.\n]*\b(?:but|certain\w*|definitiv\w+|confiden\w+|precis\w+|exact\w*|fully|further|more|than|whether"
    r"|without)\b)"
)
_REFUSALS = re.compile(
    rf"(?:{_LEAD}){{0,3}}(?:"
    rf"{_UNABLE}\s+(?:\w+\s+){{0,3}}?(?:{_TO_HELP}|{_TO_JUDGE})"
    r"|i\s+(?:must|have\s+to|need\s+to|will\s+have\s+to)\s+(?:respectfully\s+|politely\s+)?(?:decline|refuse)"
    r"|i\s+(?:respectfully\s+|politely\s+)?(?:decline|refuse)\s+to\b"
    r"|(?:this|that|it)(?:['’]s|\s+is)\s+(?:not\s+something|nothing)\s+i(?:['’]m|\s+am)?\s+(?:can|could|will|able|comfortable)"
    r"|(?:this|your|the)\s+(?:request|prompt|content|message)\s+(?:was|has\s+been|is)\s+(?:blocked|flagged|rejected|filtered)"
    r"\s+(?:by|due|because|under)"
    r"|lo\s+siento\b[^.\n]{0,40}\bno\s+puedo|no\s+puedo\s+(?:ayudar|asistir|evaluar|responder)"
    r"|(?:je\s+suis\s+)?d[ée]sol[ée]e?\b[^.\n]{0,40}\bne\s+(?:peux|puis)|je\s+ne\s+(?:peux|puis)\s+pas\s+"
    r"(?:vous\s+)?(?:aider|évaluer|répondre)"
    r"|(?:es\s+)?tut\s+mir\s+leid\b[^.\n]{0,80}\bnicht|ich\s+kann\s+(?:\w+\s+){0,3}nicht\s+(?:\w+\s+)?"
    r"(?:helfen|bewerten|beantworten)"
    r"|(?:desculpe|sinto\s+muito|lamento)\b[^.\n]{0,40}\bn[ãa]o\s+posso|mi\s+dispiace\b[^.\n]{0,40}\bnon\s+posso"
    r"|het\s+spijt\s+me\b[^.\n]{0,60}\bniet|(?:извините|простите|к\s+сожалению)[^.\n]{0,40}не\s+могу"
    r"|(?:很?抱歉|对不起|對不起)[^。\n]{0,20}(?:不能|无法|無法)|我(?:不能|无法|無法)(?:协助|協助|帮助|幫助|评估|評估|回答)"
    r"|申し訳(?:ありません|ございません)|죄송(?:합니다|하지만)"
    r")",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"""(?:\A|[.!?。！]["'”]?\s+|\n|["'”]\s{0,9}:\s{0,9}["'“])[\s*_#>`"'“-]{0,20}""")
_HEAD = 600
"""A voice that declines says so at once; further down, such words belong to an analysis."""


def refusal_in(text: str, evidence: Evidence) -> str | None:
    """The words with which a text declines to evaluate, or None. They open a sentence, unquoted."""
    head = text.lstrip()[:_HEAD]
    quotations = Quotations(head)
    for sentence in _SENTENCE.finditer(head):
        match = _REFUSALS.match(head, sentence.end())
        if not match:
            continue
        start, end = match.span()
        if not quotations.around(start, end) and not evidence.echoes(head, start, end):
            return head[start : start + 200]
    return None
