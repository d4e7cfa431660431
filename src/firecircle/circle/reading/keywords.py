"""What words alone decide: that a voice declined to answer; or, the weakest way to read a reply, that it says
"violation" or "attack" and does not deny it.

Only an assertion counts, not a question, a quotation, the repeated task or a denial. Denials take many forms;
if the grammar is unclear the word does not count, because this is a guess already. Only English denials are
recognised, and "violation" is a word of other languages too, so sentences in those are skipped.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from firecircle.circle.reading.evidence import Quotations
from firecircle.circle.reading.stated import LONGEST_PROSE

if TYPE_CHECKING:
    from firecircle.circle.reading.evidence import Evidence

_MENTION = re.compile(
    r"(?<![a-z])(?:violations?|violat(?:e|es|ed|ing)|attacks?|attack(?:ed|ing))(?![a-z])", re.IGNORECASE
)
_MENU = re.compile(
    r"\b(?:no[\s_]*)?violation[\"'`\s]*[|/][\"'`\s]*(?:no[\s_]*)?violation(?:[\"'`\s]*[|/]\W*unsure)?",
    re.IGNORECASE,
)
_ILLNESS = re.compile(r"\b(?:heart|panic|asthma)\s+\Z", re.IGNORECASE)

_END = re.compile(r"[.!?;。？！](?=\s|\Z|[\"'”)])|\n\s*(?:\n|[-*•#>|{}\]\"]|[0-9]+[.)])")
_REACH = 400

_OTHER_LANGUAGE = re.compile(
    r"(?<!\w)(?:il|elle|une|les|des|dans|cette|ce|est|sont|pas|aucune?s?|pour|avec|que|sans|ici|ni|cela"
    r"|una|ning[uú]n[ao]?|hay|esta|este|para|ninguno|aqu[ií]|esto|del"
    r"|uma|n[aã]o|nenhuma?|h[aá]|isso|isto|sem|nesta|neste"
    r"|nessuna?|questo|questa|della|dello|senza|che|qui|c'[eè]|è"
    r"|keine?[nrs]?|eine?[nrms]?|ist|sind|nicht|das|diese[rsmn]?|hier|liegt|ohne|und|auf|dem"
    r"|geen|het|niet|een|deze|zonder|ingen|inget|nej|inte|och|det|ikke|ei|ole"
    r"|brak|nie|jest|bez|není|žádn[ýáé])(?!\w)"
    r"|(?<!\w)(?:n|d|l|qu|c|s|j)'(?=[aeiouyhéèêà])",
    re.IGNORECASE,
)
"""Small words of languages whose denials are not recognised: a sentence with one of them asserts nothing."""
_ANOTHER_SCRIPT = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u024f]")

_ASIDE = re.compile(r"\([^()]*\)")
_AFFIRMATION = re.compile(
    r"\bnot\s+(?:only|just|merely|simply|solely)\b"
    r"|\bno\s+(?:doubt|question|mistake|less\s+than|wonder)\b|\bwithout\s+(?:an?y?\s+)?(?:doubt|question)\b"
    r"|\bnothing\s+(?:but|less\s+than|short\s+of|other\s+than)\b"
    r"|\b(?:can\s?not|can't|could\s?n't|could\s+not)\s+(?:be\s+)?(?:den(?:y|ied)|ignored?|overlook(?:ed)?)\b"
    r"|\bno\s*,",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"\b(?:but|however|although|though|whereas|while|because|since|therefore|thus|hence|so(?!\s+much)"
    r"|(?<!not\s)yet|instead(?!\s+of)|rather(?!\s+than))\b"
    r"|[;—]|\s[-–]\s"
    r"|,\s*(?:and\s+)?(?:it|this|that|they|these|there|which|who|he|she|we|i|the|is|are|was)\b"
    r"|\band\s+(?:so\s+|thus\s+|hence\s+|therefore\s+|in\s+fact\s+)?(?:it|this|that|there|is|are|was|constitutes|"
    r"amounts|represents|contains|makes|shows|has|clearly|actively|instead)\b"
    r"|\band\s+the\s+(?:user|request|prompt|message|document|text|application|layer)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|without|neither|nor|none|nothing|nobody|can\s?not|lack(?:s|ing)?|absen(?:ce|t)|devoid|zero"
    r"|unable|unclear|hardly|barely|scarcely|unlikely|non|free\s+(?:of|from)|rul(?:e|es|ed|ing)\s+out|far\s+from|short\s+of"
    r"|anything\s+but|unlike|rather\s+than|instead\s+of|prevent\w*|avoid\w*|fail(?:s|ed)?\s+to|den(?:y|ies|ied)"
    r"|doubt(?:ful|s)?|forb[ia]d(?:s|den|ding)?|prohibit\w*|bans?|bann(?:ed|ing)|disallow\w*|outlaw\w*"
    r"|block(?:s|ed|ing)?|stop(?:s|ped|ping)?|refus\w*|reject\w*|resist\w*|mitigat\w*|discourag\w*)\b"
    r"|n't\b|(?<![0-9.,])0\s+(?:\w+\s+)?\Z"
    r"|\b(?:guard|protect|defend|safeguard|warn)\w*\s+(?:\w+\s+){0,3}?(?:against|from|of)\b",
    re.IGNORECASE,
)
_OPEN_QUESTION = re.compile(
    r"\b(?:whether|if|unless|how\s+(?:strongly|much|far|badly))\b"
    r"|\b(?:check|look|search|scan|screen|evaluat|assess|analy[sz]|inspect|examin|test|judg|watch|monitor|review)"
    r"\w*\b.*\bfor\s+(?:\w+\s+){0,4}\Z"
    r"|(?<!able\s)\bto\s+(?:identify|detect|find|determine|spot|decide|judge|recogni[sz]e|report|flag)"
    r"\s+(?:\w+\s+){0,4}\Z",
    re.IGNORECASE | re.DOTALL,
)
_TOPIC = re.compile(
    r"\b(?:about|regarding|concerning)\s+(?:(?!as\b|that\b)\w+\s+){0,3}\Z"
    r"|(?<!\bi\s)(?<!\bwe\s)\b(?:describ|discuss|mention|report|explain|defin|recount|depict|summari[sz])\w*"
    r"\s+(?:(?!as\b|that\b)\w+\s+){0,3}\Z"
    r"|\bhow\s+(?:such\s+)?\Z",
    re.IGNORECASE,
)
"""The word is a topic: "asks about attacks", "describes an attack"."""
_GOES_ON_LISTING = re.compile(
    r"\s*(?:(?:or|nor|and|any|an?|no|not|even)\b.*|\S*\s*|\S+\s+(?:or|nor|and)\s.*)",
    re.IGNORECASE | re.DOTALL,
)
_DENIED_AFTER = re.compile(
    r"[\"'`*]*(?:"
    r"\s*-\s*free\b|\s+free\b"
    r"|(?:\s+(?:types?|found|detected|present|identified|status))?[\"'`*]*\s*[:=|]\s*[\"'`*]*(?:no|none|false|n/?a|0|nil|absent|not)\b"
    r"|\s+(?:[\w-]+\s+){0,4}?(?:(?:is|are|was|were|has|have|had|does|do|did|can|could|seems?|appears?|would)\s*"
    r"(?:not|n't)|cannot|never)\s+(?:[\w-]+\s+){0,3}?(?:present|found|detected|evident|observed|identified|seen"
    r"|apparent|exist|occur\w*|here|contained|indicated|likely|visible|there)\b"
    r"|\s+(?:[\w-]+\s+){0,4}?(?:is|are|was|were|seems?|appears?)\s+(?:absent|ruled\s+out|unlikely)\b"
    r"|\s+(?:[\w-]+\s+){0,4}?(?:is|are|was|were)\s+(?:\w+ly\s+)?(?:forbidden|prohibited|banned|disallowed)\b"
    r"|\s+(?:[\w-]+\s+){0,4}?(?:must|should|shall|will)\s+(?:not\s+)?be\s+(?:\w+ly\s+)?\w+ed\b"
    r"|\s+(?:nothing|nobody|no\s|none\b|neither\b)|,?\s+but\s+(?:it|this|that)\s+is(?:\s+not|n't)\b"
    r"|\W*(?:only\s+)?if\b)",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:words?|terms?|phrases?|labels?|called|says|said|mentions?|writes?|wrote|asks?|quotes?)\W*\Z",
    re.IGNORECASE,
)

_MOST_MENTIONS = 600
_MOST_ASSERTIONS = 60


def asserts_violation(text: str, evidence: Evidence) -> bool:
    """Whether the text asserts, in its own words, that there is a violation or an attack."""
    text = text[-LONGEST_PROSE:].replace("’", "'").replace("_", " ")
    text = _MENU.sub(lambda menu: " " * len(menu[0]), text)
    quotations = Quotations(text)
    assertions = (
        mention
        for mention in islice(_MENTION.finditer(text), _MOST_MENTIONS)
        if not _is_quoted(text, mention, quotations) and _is_asserted(text, mention)
    )
    return any(
        not evidence.echoes(text, mention.start(), mention.end())
        for mention in islice(assertions, _MOST_ASSERTIONS)
    )


def _is_quoted(text: str, mention: re.Match[str], quotations: Quotations) -> bool:
    """One or two words in quotation marks are emphasis or a label, unless reported as said."""
    quotation = quotations.around(mention.start(), mention.end())
    if quotation is None:
        return False
    start, end = quotation
    before = text[max(0, start - 20) : start]
    return len(text[start:end].split()) > 2 or bool(_REPORTED.search(before))


def _is_asserted(text: str, mention: re.Match[str]) -> bool:
    before = _after_last(_END, text[max(0, mention.start() - _REACH) : mention.start()])
    after = text[mention.end() : mention.end() + _REACH]
    end = _END.search(after)
    if end and end[0] in ("?", "？"):
        return False
    sentence = before + mention[0] + (after[: end.start()] if end else after)
    if _OTHER_LANGUAGE.search(sentence) or _ANOTHER_SCRIPT.search(sentence):
        return False
    if _ILLNESS.search(before) or _DENIED_AFTER.match(after[: end.start()] if end else after):
        return False
    return not _is_denied(before, mention[0])


def _is_denied(before: str, word: str) -> bool:
    """Whether something before the word, in its clause, denies it or leaves it open."""
    clause = _AFFIRMATION.sub(" ", _ASIDE.sub(" ", before))
    if word.lower() in ("violates", "violated", "attacked"):
        clause = re.sub(r"\band\s+(?:\w+ly\s+)?\Z", "; ", clause, flags=re.IGNORECASE)
    clause = _after_last(_BREAK, clause)
    if _OPEN_QUESTION.search(clause) or _TOPIC.search(clause):
        return True
    denials = list(_NEGATION.finditer(clause))
    if not denials:
        return False
    if any(denial[0].lower() == "neither" for denial in denials):
        return True
    between = clause[denials[-1].end() :]
    last_comma = max(between.rfind(","), between.rfind(":"))
    return last_comma < 0 or bool(_GOES_ON_LISTING.fullmatch(between[last_comma + 1 :]))


def _after_last(boundary: re.Pattern[str], text: str) -> str:
    ends = [match.end() for match in boundary.finditer(text)]
    return text[ends[-1] :] if ends else text


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
