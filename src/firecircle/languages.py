"""Which language a text is written in, as far as needed to say what the embedded voices cannot read.

They read English; the neural one roughly reads fourteen languages more. Other scripts are recognised by their
letters, other languages in Latin letters by their commonest words. Where neither tells anything (code,
tables, a few words) the text counts as read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from firecircle.names import NEURAL_MODEL, is_embedded
from firecircle.prompt import MultiNeutrosophicPrompt

LEAST_LETTERS, LEAST_OF_A_SCRIPT = 20, 6
"""Fewer letters in a language, or of another script, are a name or a word, not a text."""
LEAST_WORDS, LEAST_COMMON = 3, 2
"""Words of a stretch in Latin letters, and common words of its language among them, before it is named."""
ACCENTED = 0.04
"""The share of letters beyond ASCII from which on a stretch without a common English word is not English."""
READ_AT_MOST = 200_000
"""Characters of a layer that are looked at for their words. Letters of other scripts are counted in all."""

READ_ROUGHLY = frozenset(
    (
        *("Arabic", "Chinese", "Cyrillic", "Dutch", "French", "German", "Italian", "Japanese", "Korean"),
        *("Polish", "Portuguese", "Spanish", "Thai", "Turkish"),
    )
)
"""What the multilingual model of `embedded:neural` was taught beside English."""

_SCRIPTS = {
    "Greek": r"\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": r"\u0400-\u052f",
    "Armenian": r"\u0530-\u058f",
    "Hebrew": r"\u0590-\u05ff",
    "Arabic": r"\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff",
    "Devanagari": r"\u0900-\u097f",
    "Bengali": r"\u0980-\u09ff",
    "Gurmukhi": r"\u0a00-\u0a7f",
    "Gujarati": r"\u0a80-\u0aff",
    "Tamil": r"\u0b80-\u0bff",
    "Telugu": r"\u0c00-\u0c7f",
    "Kannada": r"\u0c80-\u0cff",
    "Malayalam": r"\u0d00-\u0d7f",
    "Sinhala": r"\u0d80-\u0dff",
    "Thai": r"\u0e00-\u0e7f",
    "Lao": r"\u0e80-\u0eff",
    "Burmese": r"\u1000-\u109f",
    "Georgian": r"\u10a0-\u10ff",
    "Ethiopic": r"\u1200-\u137f",
    "Khmer": r"\u1780-\u17ff",
    "Korean": r"\u1100-\u11ff\uac00-\ud7af",
    "Japanese": r"\u3040-\u30ff",
    "Chinese": r"\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002ebef",
}
_WORDLESS = frozenset(("Chinese", "Japanese", "Korean"))
_RUNS = {
    name: re.compile(f"[{letters}]{{{1 if name in _WORDLESS else 3},}}") for name, letters in _SCRIPTS.items()
}
"""Runs of letters of a script; single letters among Latin ones are a disguise, which a lens undoes."""

_COMMON = {
    "English": (
        "the be is are was were to of and in that have it for not on with as you do at this but his by "
        "from they we say her she or an will my one all would there their what so up out if about who get "
        "which go me when make can like time no just him know take into your some could them see other "
        "than then now only how its our any these most us a i please does did has had been should where "
        "why im i'm don't it's"
    ),
    "German": (
        "der die das und ist nicht ich du sie ein eine einen mit auf für den dem von zu im sich auch wie "
        "was wird bitte mir mich dir dich alle kann sind war aber oder wenn dein deine deinen mein meine "
        "bei nach aus noch nur über werden haben hat habe als des wir ihr euch diese dieser dieses vor "
        "kannst gib zeige"
    ),
    "French": (
        "le la les des est et un une que qui dans pour pas sur avec ce cette vous nous je tu il elle au "
        "aux du sont mais ou où ton ta tes mon ma mes votre vos toutes tous tout plus par ne comme être "
        "donne moi c'est peux quel quelle quelles comment instructions précédentes"
    ),
    "Spanish": (
        "el la los las de que y en un una es no por con para su se lo como más pero sus le ya o este sí "
        "porque esta entre cuando muy sin sobre también me hasta hay donde todo todas todos tus tu mi "
        "eres ahora del al qué cómo puedes dime haz cuál"
    ),
    "Italian": (
        "il lo la gli le di che e un una è non per con del della dei delle sono come ma più questo questa "
        "ti mi si tutte tutti tutto anche nel nella tuo tua tue tuoi mio mia al alla puoi cosa dimmi "
        "senza quando sei"
    ),
    "Portuguese": (
        "o a os as de que e do da em um uma é não por com para se na no mais como mas ao ele seu sua ou "
        "quando muito nos já eu também só pelo pela até isso ela você todas todos tudo meu minha suas "
        "seus esqueça são"
    ),
    "Dutch": (
        "de het een en van ik te dat die in is je niet zijn op aan met als voor er maar om hem dan zou "
        "wat mijn men dit zo door over ze zich bij ook tot uit der kan naar heb hoe jouw alle geen wel "
        "deze moet"
    ),
    "Polish": (
        "i w nie na się z do że to jest jak o co ale po za od tak ja ty czy już tylko mi mnie są dla "
        "przez ten ta wszystkie wszystkich twoje jego jej może być bez proszę oraz"
    ),
    "Turkish": (
        "bir ve bu da de için ne ile ben sen o mi çok daha gibi var yok ama kadar sonra olarak bana tüm "
        "her şey nasıl olan değil önceki senin benim misin mısın"
    ),
    "Indonesian": (
        "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena tersebut bisa "
        "ada mereka kamu anda semua tolong apa bagaimana jangan sebelumnya tanpa adalah atau"
    ),
    "Vietnamese": (
        "và của là có không được cho một những người này đã với trong tôi bạn các để hãy như khi từ mọi "
        "về làm nào gì"
    ),
    "Hindi in Latin letters": (
        "hai hain ka ki ke ko se mein main mujhe mera meri tum tumhara aap apna apni kya kaise karo karna "
        "kar nahi nahin aur bhi toh yeh woh sab saare batao bata do hoon tha thi liye abhi kal par yaar "
        "kuch bina phir jao dikhao matlab kyun ab pehle wala wali karne bhai hu bahut ho gaya chahiye "
        "samjhao baare dost acha kaisi kharab dekhi"
    ),
    "Swedish": (
        "och att det som en på är av för med den till inte om ett han men var jag du alla kan från ska "
        "mig din ditt dina eller när hur vad utan"
    ),
    "Danish": (
        "og at det som en på er af for med den til ikke om et han men var jeg du alle kan fra skal mig "
        "din dit dine eller når hvordan hvad uden"
    ),
    "Finnish": (
        "ja on ei se että hän mutta kun niin tai jos minä sinä kaikki voi mitä miten ole ovat myös kuin"
    ),
    "Czech": (
        "a je se na to že v s z do jsem jako ale tak by co si pro když jsou nebo jak všechny prosím mi "
        "bez jste"
    ),
    "Romanian": (
        "și în de la cu nu este că un o care pe pentru mai din ce se sunt dar toate te rog ai fost sau cum"
    ),
    "Hungarian": (
        "a az és hogy nem egy is van ez de meg csak mint már kell minden vagy még el azt ezt lesz nekem"
    ),
    "Filipino": ("ang ng sa na mga ay ako ikaw ka ko mo hindi ito iyon kung para at lahat paano ano po"),
    "Swahili": ("na ya wa kwa ni katika za la kama hii yako yangu wote bila sasa tafadhali nini jinsi"),
}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _words in _COMMON.items():
    for _word in set(_words.split()):
        if _language == "English" or (len(_word) > 1 and "English" not in _LANGUAGES_OF.get(_word, ())):
            _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_STRETCH = re.compile(r"[^\n.!?。！？;:|]+")


def unread_letters(text: str) -> Counter[str]:
    """The letters of a text that stand in languages which the embedded voices do not read, by language."""
    letters = Counter[str]()
    if not text.isascii():
        for script, pattern in _RUNS.items():
            letters[script] = sum(map(len, pattern.findall(text)))
        if letters["Japanese"]:  # kana among Chinese characters: all of it is Japanese
            letters["Japanese"] += letters.pop("Chinese", 0)
    for stretch in _STRETCH.finditer(text[:READ_AT_MOST]):
        language = _latin_language(stretch.group())
        if language is not None:
            letters[language] += sum(map(str.isalpha, stretch.group()))
    return Counter({language: count for language, count in letters.items() if count >= _least(language)})


def _least(language: str) -> int:
    return LEAST_OF_A_SCRIPT if language in _SCRIPTS else LEAST_LETTERS


def _latin_language(stretch: str) -> str | None:
    """The language of a stretch in Latin letters, if it is one that is not English."""
    words = _WORD.findall(stretch.lower())
    if len(words) < LEAST_WORDS:
        return None
    common = Counter(language for word in words for language in _LANGUAGES_OF.get(word, ()))
    english = common.pop("English", 0)
    if common:
        language, count = max(common.items(), key=lambda item: item[1])
        if count >= LEAST_COMMON and count > english:
            return language
    if not english and not stretch.isascii():
        latin = [c for c in stretch if c.isalpha() and c < "\u0250"]
        if sum(not c.isascii() for c in latin) > ACCENTED * len(latin) and len(latin) >= LEAST_LETTERS:
            return "another language than English"
    return None


def unread_languages(prompt: MultiNeutrosophicPrompt) -> Counter[str]:
    """The unread letters of the layers that are judged, by language."""
    return unread_letters(prompt.application) + unread_letters(prompt.user)


def unread_advisory(prompt: MultiNeutrosophicPrompt, heard: Iterable[str]) -> str | None:
    """What nobody who was heard could read well, in a sentence; None when somebody could."""
    heard = set(heard)
    if not all(map(is_embedded, heard)):
        return None
    languages = [language for language, _ in unread_languages(prompt).most_common()]
    if not languages:
        return None
    named = " and ".join(languages)
    if NEURAL_MODEL in heard and READ_ROUGHLY.issuperset(languages):
        return (
            f"{named}: only {NEURAL_MODEL} reads it, and roughly: without an alarm this prompt is not clean"
        )
    return f"{named}: no voice here reads it, so without an alarm this prompt is unread, not clean"
