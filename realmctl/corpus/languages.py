"""Languages by their code, as Wikipedia writes it: en, de, pt, zh-hant."""

from __future__ import annotations

from functools import cache

from realmctl.data import table, words
from realmctl.errors import ConfigError

AUTO = "auto"
UNDETERMINED = "und"
"""A text of no one language: only the rules of Unicode apply (ISO 639-2)."""
CHINESE_VARIANTS = {
    "zh-hans": ("zh-hans", "zh-cn", "zh-sg", "zh-my"),
    "zh-hant": ("zh-hant", "zh-tw", "zh-hk", "zh-mo"),
}
"""The scripts of Chinese, with the names under which `-{...}-` has a word for them, the likeliest first."""
_SAME = {"simple": "en", "no": "nb"}


@cache
def language_codes() -> frozenset[str]:
    """Return the codes of the languages that have a Wikipedia."""
    return words(table("namespaces")["links"]["languages"])


def check_language(flag: str, code: str) -> None:
    """Raise ConfigError for a code that Wikipedia does not use."""
    known = {*language_codes(), UNDETERMINED, *(name for names in CHINESE_VARIANTS.values() for name in names)}
    if code != AUTO and code not in known:
        raise ConfigError(
            f"{flag} {code}: there is no such language. Write the code under which it has a Wikipedia, such as en, de, ko or zh-hant, or "
            f"{UNDETERMINED} for a text of several."
        )


def variants_of(wanted: str, site: str) -> tuple[str, ...]:
    """Return the variants of Chinese to choose for a wanted language, the likeliest first. Empty for a site in another language."""
    if plain_language(site) != "zh":
        return ()
    names = next((names for names in CHINESE_VARIANTS.values() if wanted in names), CHINESE_VARIANTS["zh-hans"])
    return tuple(dict.fromkeys([*([wanted] if wanted in names else []), *names, "zh"]))


def plain_language(code: str) -> str:
    """Return the code whose words a language has: zh for zh-hant, en for simple."""
    return (
        "zh"
        if code.startswith("zh-") and code[3:5] in ("ha", "cn", "sg", "my", "tw", "hk", "mo")
        else _SAME.get(code, code)
    )
