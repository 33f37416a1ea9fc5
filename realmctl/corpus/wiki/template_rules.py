"""The table of templates: RULES says what each shows as wikitext, SILENT which show nothing in the running text.

Each rule gives what Wikipedia's documentation of the template (en.wikipedia.org/wiki/Template:NAME/doc) shows, without
footnotes, pronunciations, second units and ages. A name stands here in lower case, with the names that redirect to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from realmctl.corpus.wiki import quantities
from realmctl.corpus.wiki.arguments import Arguments
from realmctl.corpus.wiki.namespaces import LANGUAGES

TemplateRule = Callable[[Arguments], str]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def words(text: str) -> frozenset[str]:
    return frozenset(" ".join(name.split()).lower() for name in text.split(","))


def nothing(a: Arguments) -> str:
    return ""


def first(a: Arguments) -> str:
    return a[0] or a.get("text", "content", "quote")


def second(a: Arguments) -> str:
    return a[1]


def _last(a: Arguments) -> str:
    return next(filter(None, reversed(a.args)), "")


def joined(separator: str) -> TemplateRule:
    return lambda a: separator.join(filter(None, a.args))


def _fixed(text: str) -> TemplateRule:
    return lambda a: text


def around(before: str, after: str = "", alone: str = "") -> TemplateRule:
    """Return the rule that shows the first argument between two texts, or `alone` if there is none."""
    return lambda a: f"{before}{first(a)}{after}" if first(a) else alone


# dates


def _date(a: Arguments) -> str:
    """`1879|3|14` gives "March 14, 1879", or with df=y "14 March 1879". A missing day or month is left out."""
    year, month, day = (a[i].lstrip("0") for i in range(3))
    if not year.isdigit():
        return a[0]
    if month.isdigit() and 1 <= int(month) <= 12:
        name = MONTHS[int(month) - 1]
    elif month.isalpha():
        name = month
    else:
        return year
    if not day.isdigit():
        return f"{name} {year}"
    return f"{day} {name} {year}" if a.yes("df") else f"{name} {day}, {year}"


def _iso_date(a: Arguments) -> str:
    """`2010-05-03|dmy` gives "3 May 2010"."""
    parts = a[0].split("-")
    if len(parts) != 3 or not all(map(str.isdigit, parts)):
        return _date(a)
    return _date(Arguments(parts, {"df": "n" if "mdy" in a[1] else "y"}))


def _start_and_end(a: Arguments) -> str:
    parts = [part for part in (_date(Arguments(a.args[i : i + 3], a.named)) for i in (0, 3)) if part]
    return " – ".join(parts)


def _old_style_date(a: Arguments) -> str:
    """`7 May|1840|25 April` gives "7 May 1840": the day of the new calendar."""
    return (f"{a[0]}, {a[1]}" if a[0][:1].isalpha() else f"{a[0]} {a[1]}").strip(", ")


def _as_of(a: Arguments) -> str:
    word = "Since" if a.yes("since") else "As of"
    date = _date(Arguments(a.args, {"df": "" if a.get("df").lower() in ("us", "mdy") else "y"}))
    return (a.get("alt") or f"{word.lower() if a.yes('lc') else word} {date}") + a.get("post")


def _years(mark: str) -> TemplateRule:
    """Return the rule of `1485|1509`, which shows "r. 1485–1509"."""
    return lambda a: f"{mark} " + "–".join(filter(None, a.args[:2])) if a[0] else mark


def _circa(a: Arguments) -> str:
    return f"c. {a[0]} – c. {a[1]}" if a[1] else f"c. {a[0]}".strip()


def _season(a: Arguments) -> str:
    """`2001` gives "2001–02"."""
    return f"{a[0]}–{(int(a[0]) + 1) % 100:02}" if a[0].isdecimal() and len(a[0]) == 4 else a[0]


def _age(a: Arguments) -> str:
    """The whole years between two dates. The age today is not known."""
    numbers = [int(part) for part in a.args[:6] if part.isdecimal() and len(part) < 5]
    if len(numbers) < 6:
        return ""
    return str(numbers[3] - numbers[0] - (numbers[4:6] < numbers[1:3]))


def _roman(a: Arguments) -> str:
    """`14` gives XIV."""
    if not a[0].isdecimal() or not 0 < int(a[0]) < 4000:
        return a[0]
    left, shown = int(a[0]), ""
    signs = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")
    for value, sign in zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), signs, strict=True):
        shown, left = shown + sign * (left // value), left % value
    return shown


def _roads(a: Arguments) -> str:
    """`I|5|US|101` gives "I-5 / US 101"."""
    pairs = [*zip(a.args[::2], a.args[1::2], strict=False)]
    return " / ".join(f"{kind}-{number}" if kind == "I" else f"{kind} {number}" for kind, number in pairs)


# languages


def _foreign(a: Arguments) -> str:
    """`nihongo`: English text (kanji, romaji)."""
    inside = ", ".join(filter(None, a.args[1:4]))
    return (f"{a[0]} ({inside})" if a[0] and inside else a[0] or inside) + a[4]


def _foreign_third(a: Arguments) -> str:
    return _foreign(Arguments([a[0], a[1], a[2]], {}))


def _with_meaning(a: Arguments, place: int) -> str:
    """A word of another language, its romanization and its meaning: "Москва, romanized: Moskva, lit. 'x'"."""
    shown = a[place] or a.get("text")
    if romanized := a[place + 1] or a.get("translit", "tr"):
        shown += f", romanized: {romanized}"
    if meaning := a[place + 2] or a.get("lit", "translation"):
        shown += f", lit. '{meaning}'"
    return shown


def language_word(a: Arguments) -> str:
    """`lang-de|Wien` shows the word."""
    return _with_meaning(a, 0)


def _russian(a: Arguments) -> str:
    return _with_meaning(Arguments(a.args[:2], a.named), 0)


CHINESE = {
    "c": "Chinese",
    "s": "simplified Chinese",
    "t": "traditional Chinese",
    "p": "pinyin",
    "w": "Wade–Giles",
    "j": "Jyutping",
    "l": "lit.",
}
KOREAN = {"hangul": "Korean", "hanja": "Hanja", "rr": "RR", "mr": "MR", "lit": "lit."}


def _labelled(labels: dict[str, str]) -> TemplateRule:
    """Return the rule of `s=北京|p=Běijīng`, which shows "simplified Chinese: 北京; pinyin: Běijīng"."""
    return lambda a: "; ".join(
        [
            *filter(None, a.args[:1]),
            *(f"{labels[key]}: {word}" for key, word in a.named.items() if key in labels and word),
        ]
    )


# names


def _link(a: Arguments) -> str:
    """`Title|de|...` links to the article; the older form has the language first."""
    args = a.args[1:] if a[0].lower() in LANGUAGES and a[1] else a.args
    return f"[[{args[0]}|{a.get('lt') or args[0]}]]" if args and args[0] else ""


def _ship(a: Arguments, prefix: str | None = None) -> str:
    """`ship|HMS|Hood|51` gives "HMS Hood (51)". The last argument adds up what is shown: prefix 4, name 2, number 1."""
    args = a.args if prefix is None else [prefix, *a.args]
    start, name, number, form = [*args, "", "", "", ""][:4]
    shown = int(form) if form in {"1", "2", "3", "4", "5", "6"} else 7
    before = [start] * bool(shown & 4) + [name] * bool(shown & 2)
    words = " ".join(filter(None, before))
    if not shown & 1 or not number:
        return words
    return f"{words} ({number})" if words else number


def _ship_class(a: Arguments) -> str:
    return f"{a[0]}-class {a[1]}".strip() if a[0] else ""


def _english_title(a: Arguments) -> str:
    return f"{a[0]} {a[1]}".strip()


def _bible(a: Arguments) -> str:
    """`1|Corinthians|13:4|KJV` gives "1 Corinthians 13:4"."""
    return " ".join(filter(None, a.args[:3]))


def _bible_reference(a: Arguments) -> str:
    """`Mark|3:25|9` gives "Mark 3:25"; the third argument is the translation."""
    return f"{a[0]} {a[1]}".strip()


def _quran(a: Arguments) -> str:
    return f"Quran {a[0]}:{a[1]}" if a[1] else f"Quran {a[0]}"


def _authors(a: Arguments) -> str:
    """`harvtxt|Boolos|Jeffrey|1974` gives "Boolos & Jeffrey (1974)"."""
    *names, year = [part for part in a.args if part] or [""]
    if len(names) > 3:
        return f"{names[0]} et al. ({year})"
    joined = " & ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return f"{joined} ({year})" if joined else year


def _stocks(exchange: str) -> TemplateRule:
    return around(f"{exchange}: ")


def _airport(a: Arguments) -> str:
    codes = zip(("IATA", "ICAO", "FAA LID"), a.args, strict=False)
    shown = ", ".join(f"{kind}: {code}" for kind, code in codes if code)
    return f"({shown})" if shown else ""


# money


def _money(sign: str) -> TemplateRule:
    return lambda a: f"{sign}{a[0]}" if a[0] else sign


BIG = {"k": "thousand", "m": "million", "b": "billion", "t": "trillion", "l": "lakh", "c": "crore", "lc": "lakh crore"}


def _converted_money(sign: str) -> TemplateRule:
    """Return the rule of `5|c`, which shows "₹5 crore" and no other currency."""
    return lambda a: f"{sign}{a[0]} {BIG.get(a[1].lower(), '')}".strip() if a[0] else ""


# signs and formulas


def _linked_quote(a: Arguments) -> str:
    return f'"{first(a)}"'


def _sic(a: Arguments) -> str:
    words = "".join(a.args)
    mark = "" if a.yes("hide") else "&#91;sic&#93;"
    return f"{words} {mark}".strip() if words else mark


def _spaces(a: Arguments) -> str:
    return " "


def _coordinates(a: Arguments) -> str:
    """`13|19|N|169|9|W` gives "13°19′N 169°9′W", and `43.65|-79.38` "43.65°N 79.38°W"."""
    if a.get("display").strip() in ("title", "t"):
        return ""
    numbers, places = list[str](), list[str]()
    for part in a.args[:8]:
        if part in ("N", "S", "E", "W"):
            places.append("".join(map("".join, zip(numbers, "°′″", strict=False))) + part)
            numbers = []
        elif part.replace(".", "", 1).lstrip("-").isdecimal():
            numbers.append(part)
    if not places and len(numbers) >= 2:
        for number, (positive, negative) in zip(numbers, [("N", "S"), ("E", "W")], strict=False):
            places.append(f"{number.lstrip('-')}°{negative if number.startswith('-') else positive}")
    return " ".join(places)


def _angle(signs: str) -> TemplateRule:
    return lambda a: " ".join(f"{number}{sign}" for number, sign in zip(a.args, signs, strict=False) if number)


def _music(a: Arguments) -> str:
    signs = {
        "flat": "♭",
        "b": "♭",
        "sharp": "♯",
        "#": "♯",
        "natural": "♮",
        "n": "♮",
        "doublesharp": "𝄪",
        "doubleflat": "𝄫",
    }
    return f"{a[1]}/{a[2]}" if a[0] == "time" else signs.get(a[0], "")


def _duration(a: Arguments) -> str:
    """`m=3|s=20` and `3:20` give "3:20"."""
    numbers = [a.named.get(unit, "") for unit in "hms"] if a.named else list(a.args)
    while numbers and not numbers[0]:
        del numbers[0]
    return ":".join([*numbers[:1], *(f"{number:0>2}" for number in numbers[1:])])


def _ordinal(a: Arguments) -> str:
    if not a[0].isdecimal():
        return a[0]
    last = 0 if a[0][-2:-1] == "1" else int(a[0][-1])
    return a[0] + {1: "st", 2: "nd", 3: "rd"}.get(last, "th")


def _marked(tag: str) -> TemplateRule:
    return lambda a: f"<{tag}>{a[0]}</{tag}>"


def _index_and_power(a: Arguments) -> str:
    """`p=2|b=4` stands above and below its letter; `p=+0.1|b=-0.2` is an uncertainty, "+0.1−0.2"."""
    above, below = a.get("p") or a[0], a.get("b") or a[1]
    if above[:1] in ("+", "±") and below[:1] in ("-", "−"):
        return f"{above}−{below[1:]}"
    return f"<sub>{below}</sub><sup>{above}</sup>"


def _court_case(a: Arguments) -> str:
    """`410|113|1973` gives "410 U.S. 113 (1973)"."""
    return f"{a[0]} U.S. {a[1]}" + (f" ({a[2]})" if a[2] else "")


def _named(names: str, rule: TemplateRule) -> dict[str, TemplateRule]:
    return dict.fromkeys(words(names), rule)


FIRST = """
    nowrap, nobr, nobreak, no wrap, nowr, nwr, j, noitalic, nobold, normal, normalsize, big, small, smaller,
    larger, large, huge, midsize, em, i, italic, italics, ital, b, bold, strong, strong emphasis, u, underline,
    strike, strikethrough, mvar, var, varserif, vr, math, bigmath, intmath, abbr, abbreviation, abbrv, define,
    defn, vanchor, visible anchor, va, vanc, sc, sc2, smallcaps, small caps, smcaps, smallcaps all, allcaps,
    unicode, polytonic, quote, blockquote, cquote, quotation, bquote, quote box, pull quote, pullquote, centered
    pull quote, poemquote, poem quote, long quote, bq, block indent, blockindent, bi, in5, nastaliq, nq, code,
    codett, mono, monospace, monospaced, samp, kbd, key, key press, keypress, tt, pre2, tt2, serif, sans-serif,
    sans, flag, flagcountry, flagu, fb, fbw, nft, plainlist, flatlist, not a typo, notatypo, typo, chem name,
    proper name, as written, longitem, nts, number table sorting, birth-date, birth-date and age, death-date,
    death-date and age, start-date, end-date, font, center, centre, text, citation needed span, cns, clarify
    span, dubious span, failed verification span, avoid wrap, snamei, sname, mlby, mlb year, by, baseball year,
    nfly, nfl year, plainlink, bibleref2c, abbrlink, wt, overline, overbar
"""
SECOND = """
    lang, rtl-lang, rtlang, native name, lang/ipa, wikt-lang, resize, size, font size, fontsize, font color,
    font colour, fgcolor, text color, colored link, background color, hover title, htitle, sort, audio,
    sound, legend
"""
PREFIXES_OF_SHIPS = """
    USS, HMS, HMAS, HMCS, HMNZS, HMIS, HMSAS, HMVS, HMPNGS, RMS, SS, MS, MV, SMS, INS, USCGC, USNS, USAT, USRC, USCS,
    USAV, USLHT, USFC, RFA, ROKS, ORP, HDMS, HMT, HMHS, HMY, PS, TSS, TS, NS, MY, FS, ARA, BAP, BRP, KRI, RV, RRS, CCGS,
    CSS, JDS, JS, NRP, TCG, GTS, MTS, RIMS, SAS, TSMV, PNS, BNS, SLNS, KD, RSS, ROCS, SY, HTMS, FNS
"""
CURRENCIES = {
    "us$": "US$",
    "usd": "US$",
    "gbp": "£",
    "£": "£",
    "pound": "£",
    "stg": "£",
    "eur": "€",
    "euro": "€",
    "€": "€",
    "cad": "C$",
    "c$": "C$",
    "ca$": "C$",
    "can$": "C$",
    "aud": "A$",
    "a$": "A$",
    "au$": "A$",
    "nzd": "NZ$",
    "nz$": "NZ$",
    "hkd": "HK$",
    "hk$": "HK$",
    "sgd": "S$",
    "s$": "S$",
    "twd": "NT$",
    "ntd": "NT$",
    "nt$": "NT$",
    "mxn": "MX$",
    "brl": "R$",
    "r$": "R$",
    "jpy": "¥",
    "¥": "¥",
    "yen": "¥",
    "cny": "CN¥",
    "cn¥": "CN¥",
    "rmb": "CN¥",
    "inr": "₹",
    "₹": "₹",
    "indian rupee": "₹",
    "indian rupees": "₹",
    "pkr": "Rs. ",
    "lkr": "Rs. ",
    "krw": "₩",
    "₩": "₩",
    "won": "₩",
    "php": "₱",
    "₱": "₱",
    "peso": "₱",
    "rub": "₽",
    "₽": "₽",
    "uah": "₴",
    "₴": "₴",
    "ils": "₪",
    "nis": "₪",
    "₪": "₪",
    "try": "₺",
    "₺": "₺",
    "thb": "฿",
    "฿": "฿",
    "ngn": "₦",
    "₦": "₦",
    "vnd": "₫",
    "ghs": "GH₵",
    "zar": "R",
    "idr": "Rp",
    "myr": "RM",
    "chf": "CHF ",
    "ir£": "IR£",
    "irp": "IR£",
    "aed": "AED ",
    "btc": "₿",
    "dem": "DM ",
    "bdt": "৳",
    "৳": "৳",
    "dm": "DM ",
    "frf": "₣",
    "itl": "₤",
    "nlg": "ƒ",
    "irr": "IRR ",
    "sar": "SAR ",
    "qar": "QAR ",
    "kes": "KSh ",
}
CROWNS = {
    "sek": "kr",
    "nok": "kr",
    "dkk": "kr.",
    "isk": "kr",
    "pln": "zł",
    "czk": "Kč",
    "huf": "Ft",
    "ron": "lei",
    "bgn": "lv",
}
SPACED_SIGNS = {
    "–": "snd, snds, spaced ndash, spaced en dash, spaced endash, spaced en-dash, spnd, sndash, spndash, nbspndash, dash",
    "—": "snmd, spmd, spaced mdash, spaced em dash, spaced emdash, spaced em-dash, smdash, spemdash",
    "·": "·, dot, middot, spaced dot",
    "•": "•, bull, bullet, spaced bullet",
}
"""Signs that stand between spaces, with the templates that show them. SIGNS stand without."""
SIGNS = {
    "–": "ndash, en dash, endash, en-dash, n-dash, nd, nsndns, –",
    "—": "mdash, em dash, emdash, em-dash, m-dash, mdashb, nsmdns, —, --",
    "——": "long dash",
    "‑": "nbhyph, nbh, non-breaking hyphen",
    "-": "hyphen, hyphen-minus",
    "−": "minus, minus sign, −",
    "×": "times, ×",
    "⇌": "eqm",
    " ": "nbsp, spaces, space, thinsp, thin space, hairsp, hair space, nnbsp, ensp, en space, emsp, em space, gap, quad, pad, tab,"
    "br, break, figure space, indent, crlf",
    "\n\n": "pb, paragraph break, paragraph",
    "\u200d": "zwj, zero width joiner, zero-width joiner",
    "\u200c": "zwnj, zero width non-joiner, zero-width non-joiner",
    "&#39;": "', apostrophe, ’",
    "&#39;s": "'s, ’s",
    '&#39;"': "' \", '\"",
    '"&#39;': "\" ', \"'",
    '"': '-", "-',
    "&#61;": "=, equals, equals sign",
    "&#124;": "pipe, !, vertical bar",
    "&#124;&#124;": "!!",
    "&#123;": "(",
    "&#125;": ")",
    "&#123;&#123;": "((",
    "&#125;&#125;": "))",
    "&#91;": "!(",
    "&#93;": ")!",
    "&#42;": "asterisk, *",
    "&#35;": "number sign, hash",
    "&#95;": "underscore",
    "...": "..., ellipsis",
    "♯": "sharp",
    "♭": "flat",
    "♮": "natural",
    "ʻ": "okina, ʻokina, ʻ",
    "ʾ": "hamza",
    "ʿ": "ayin, asper",
    "ꞌ": "saltillo",
    "′": "prime",
    "″": "double prime, pprime",
    "°": "degree, deg",
    "§": "section sign, §",
    "†": "dagger, †",
    "‡": "double-dagger, ddagger, double dagger, ‡",
    "½": "1/2, half, ½",
    "¼": "1/4, ¼",
    "¾": "3/4, ¾",
    "CO2": "co2",
    "H2O": "h2o",
    "CO2-eq": "co2-eq",
    "C": "carbon",
    "H": "hydrogen",
    "O": "oxygen",
    "N": "nitrogen",
    "M☉": "solar mass, msol",
    "R☉": "solar radius",
    "L☉": "solar luminosity",
    "π": "pi",
}
STOCKS = {
    "NYSE": "nyse, new york stock exchange",
    "Nasdaq": "nasdaq",
    "LSE": "lse, london stock exchange",
    "TSX": "tsx, toronto stock exchange",
    "ASX": "asx",
    "TYO": "tyo",
    "SEHK": "sehk",
    "BSE": "bse",
    "NSE": "nse",
    "FWB": "fwb",
    "Euronext": "euronext",
    "KRX": "krx",
}

RULES: dict[str, TemplateRule] = {
    **_named(FIRST, first),
    **_named(SECOND, second),
    **_named("script, transl, transliteration, xlit, tlit, langnf, color, colour", _last),
    # numbers
    **_named("convert, cvt, conv", quantities.convert),
    **_named("val", quantities.value),
    **_named("gaps", quantities.gaps),
    **_named("frac, fraction, fract, sfrac, tfrac", quantities.fraction),
    **_named("±, +-, +/-, pm, plusminus, plus or minus", quantities.plus_minus),
    **_named("e, esp, x10^, ×10^", quantities.power_of_ten),
    **_named("10^", around("10^")),
    **_named("railgauge, track gauge", quantities.gauge),
    **_named("height, weight", quantities.height),
    **_named("pow, power", lambda a: f"{a[0]}^{a[1]}"),
    **_named("sup, superscript", _marked("sup")),
    **_named("sub, subscript", _marked("sub")),
    **_named("su", _index_and_power),
    **_named("radic, sqrt", around("√")),
    **_named("abs, mabs", around("&#124;", "&#124;")),
    **_named("ordinal, nth, ord", _ordinal),
    **_named("no., numero, №", around("No. ", alone="No.")),
    **_named("pop density", quantities.population_density),
    **_named("percentage", quantities.percentage),
    **_named("roman, roman numerals, rn", _roman),
    **_named("jct", _roads),
    **_named("format price, formatprice, formatnum", lambda a: quantities.grouped(a[0])),
    **_named("duration", _duration),
    **_named("ra, right ascension", _angle("hms")),
    **_named("dec", _angle("°′″")),
    **_named("coord, coords", _coordinates),
    # dates
    **_named(
        "birth date, dob, bda, birth date and age, birthdateandage, birth date and age2, death date, death date and age, dda, deathdateandage, death date and given age",
        _date,
    ),
    **_named(
        "start date, start date and age, startdate, end date, enddate, end date and age, film date, dts, date table sorting",
        _date,
    ),
    **_named("birth year and age, birth-year and age, death year and age, bya, dya", first),
    **_named("date, iso date", _iso_date),
    **_named("start and end dates, start and end date", _start_and_end),
    **_named("oldstyledate, old style date, oldstyledatedy, oldstyledateny", _old_style_date),
    **_named("circa, c., ca., ca", _circa),
    **_named("b.", around("b. ")),
    **_named("d.", around("d. ")),
    **_named("floruit, fl., fl", _years("fl.")),
    **_named("reign, r.", _years("r.")),
    **_named("as of, asof", _as_of),
    **_named("nhly, nbay, nhl year", _season),
    **_named("age, age in years", _age),
    **_named("ad", around("AD ", alone="AD")),
    # languages
    **_named("langx", lambda a: _with_meaning(a, 1)),
    **_named("lang-rus", _russian),
    **_named("zh, lang-zh", _labelled(CHINESE)),
    **_named("korean, ko-hhrm", _labelled(KOREAN)),
    **_named("nihongo, nihongo krt", _foreign),
    **_named("nihongo3", _foreign_third),
    **_named("nihongo2", first),
    **_named("linktext", joined("")),
    **_named("verse translation", first),
    **_named("angbr, angle bracket, angle brackets, angbr ipa, grapheme", around("⟨", "⟩")),
    **_named("bracket, brackets, square bracket", around("&#91;", "&#93;")),
    # names
    **_named("ill, interlanguage link, interlanguage link multi, illm", _link),
    **_named("sortname", _english_title),
    **_named("ship", _ship),
    **{name: partial(_ship, prefix=name.upper()) for name in words(PREFIXES_OF_SHIPS)},
    **{name.lower(): partial(_ship, prefix=name) for name in ("HSwMS", "HNoMS", "HNLMS")},
    **_named("smu, sm u-boat", partial(_ship, prefix="SM")),
    **_named("gs, german submarine", partial(_ship, prefix="German submarine")),
    **_named("sclass, sclass-, sclass2, sclass2-", _ship_class),
    **_named("bibleverse, bv, bibleverse-nb", _bible),
    **_named("bibleref, bibleref2", _bible_reference),
    **_named("cite quran, qref, quran-usc", _quran),
    **_named("harvtxt, harvcoltxt", _authors),
    **_named("airport codes", _airport),
    **_named("rws", around("", " railway station")),
    **_named("station", around("", " station")),
    **_named("us patent", lambda a: f"U.S. Patent {quantities.grouped(a[0])}"),
    **_named("ussc", _court_case),
    **_named("usc, uscode", lambda a: f"{a[0]} U.S.C. § {a[1]}"),
    **_named("uspl", lambda a: f"Pub. L. {a[0]}–{a[1]}"),
    **_named("mpl, mp", joined("")),
    **_named("isbn", around("ISBN ")),
    **_named("oclc", around("OCLC ")),
    **_named("issn", around("ISSN ")),
    **{name: _stocks(exchange) for exchange, names in STOCKS.items() for name in words(names)},
    # money
    **{name: _money(sign) for name, sign in CURRENCIES.items()},
    **{name: around("", f" {unit}") for name, unit in CROWNS.items()},
    **_named("inrconvert", _converted_money("₹")),
    **_named("gbpconvert", _converted_money("£")),
    **_named("usdconvert", _converted_money("US$")),
    **_named("eurconvert", _converted_money("€")),
    **_named("audconvert", _converted_money("A$")),
    **_named("cadconvert", _converted_money("C$")),
    **_named("nokconvert", lambda a: f"{_converted_money('')(a)} kr".strip()),
    # chemistry, music and lists
    **_named("chem, chem2", joined("")),
    **_named("simplenuclide, simplenuclide2, nuclide, nuclide2", lambda a: f"{a[0]}-{a[1]}" if a[1] else a[0]),
    **_named("ordered list, bulleted list, unordered list", lambda a: "".join(f"\n* {item}" for item in a.args) + "\n"),
    **_named("music", _music),
    **_named("hlist, unbulleted list, ubl, ublist, enum, cslist, blist", joined(", ")),
    # quotations and signs
    **_named('"', _linked_quote),
    **_named("qi, tq", around('"', '"')),
    **_named("rquote", second),
    **_named("sic", _sic),
    **{name: _fixed(f" {sign} ") for sign, names in SPACED_SIGNS.items() for name in words(names)},
    **{name: _fixed(sign) for sign, names in SIGNS.items() for name in words(names)},
}
BY_PREFIX: dict[str, TemplateRule] = {"lang-": language_word, "script/": _last, "convert/": quantities.convert}
"""Families of templates, such as {{lang-de}} for each language."""

SILENT = words("""
    citation needed, cn, fact, citation-needed, needs citation, unreferenced inline, unsourced inline, clarify,
    clarification needed, clarifyme, clarify me, what, huh, vague, specify, explain, elucidate, expand inline,
    which, which?, who, who?, whom, whom?, by whom, by whom?, according to whom, according to whom?, attribution
    needed, weasel inline, weasel-inline, weasel word, peacock inline, peacock term, pov statement,
    pov-statement, pov inline, neutrality disputed, lopsided inline, undue weight inline, undue inline, or,
    original research inline, original research?, syn, synthesis inline, speculation?, speculation inline,
    dubious, disputed inline, disputed-inline, contradict-inline, contradictory inline, inconsistent, failed
    verification, fv, not in citation, nic, better source, better source needed, bsn, unreliable source,
    unreliable source?, unreliable source inline, rs?, self-published inline, self-published source, sps,
    primary source inline, primary source needed, psn, third-party inline, non-primary source needed, verify
    source, vs, verification needed, verify credibility, citation style inline, full, full citation needed, page
    needed, pn, page number needed, page?, volume needed, issue needed, date needed, year needed, season needed,
    time needed, when, when?, since when, until when, where, where?, why, why?, how, how?, how often, quantify,
    how many, whose, update inline, update after, update-inline, out of date inline, obsolescent inline, needs
    update inline, chronology citation needed, dead link, deadlink, dl, cbignore, link rot inline, broken
    footnote, disambiguation needed, disambig needed, ambiguous link, link needed, importance inline,
    importance-inline, relevance inline, relevance?, trivia inline, fan inline, notability inline, non sequitur,
    jargon inline, technical inline, tone inline, tone-inline, editorializing, buzz inline, opinion, medcn,
    medrs, medical citation needed, medref inline, qualify evidence, copy edit inline, copyedit inline,
    copyedit-inline, awkward, incomprehensible inline, globalize inline, globalize-inline, example needed,
    examples needed, additional citation needed, additional citations needed inline, over-quotation inline,
    excessive citations inline, excessive citations, ref supports2, discuss, discuss inline, dubious inline,
    sfn, sfnp, sfnm, sfnmp, sfnref, sfn whitelist, efn, efn-ua, efn-lr, efn-la, efn-ur, efn-lg, efn-ug, refn,
    #tag:ref, note label, notetag, ref, ref label, note, rp, r, ran, ref name, harv, harvp, harvnb, harvs,
    harvcol, harvcolnb, harvid, harvard citation, harvard citation no brackets, citation, cite, cit, inflation,
    inflation-fn, inflation-year, inflation/fn, inflation/year, fxconvert, currentyear, currentmonth,
    currentday, currentdate, pagename, basepagename, fullpagename, defaultsort, displaytitle,
    dentalformula, main, main article, mainarticle, main articles, main list, see, see also, seealso, also,
    further, further information, details, see main, about, for, for multi, other uses, otheruses, other, other
    people, other places, redirect, redirect-distinguish, redirect2, redirect-multi, distinguish, hatnote,
    rellink, not to be confused with, confused, similar names, anchor, anchors, shortcut, toc, toc left, toc
    right, toclimit, toc limit, compact toc, notoc, tocright, tocleft, toc hidden, clear, clr, -, clear left,
    clear right, clearleft, clearright, portal, portal bar, portal inline, portal-inline, sister project, sister
    project links, commons, commons category, commonscat, commons category-inline, wiktionary, wiktionary
    inline, wikisource, wikisource-inline, wikiquote, wikibooks, wikispecies, authority control, short
    description, shortdesc, italic title, italictitle, lowercase title, lowercase, correct title, good article,
    featured article, pp, pp-move, pp-protected, pp-vandalism, pp-semi, good article icon, reflist, references,
    notelist, notes, refbegin, refend, stub, orphan, multiple issues, ambox, cleanup, refimprove, more citations
    needed, unreferenced, no footnotes, more footnotes, pov, tone, in-line, flagicon, flag icon, flagicon image,
    flagdeco, flagathlete icon, fbicon, cr-icon, cricon, gold1, silver2, bronze3, gold medal, silver medal,
    bronze medal, gold, silver, bronze, medal, increase, decrease, steady, up, down, profit, loss, gain,
    increasenegative, decreasepositive, yes, no2, y, n, tick, cross, check mark, listen, audio-nohelp,
    audio-ipa, audio icon, ipa, ipac, ipac-en, ipa-all, ipalink, ipaslink, ipa link, ipablink, ipa-en, ipaeng,
    respell, pronunciation, pronunciation respelling, pronunciation needed, ipaalink, usdict, pron-en, pron,
    esh, multiple image, annotated image, side box, sidebar, external media, external image, infobox, navbox,
    succession box, s-start, s-end, graph, chart, chess diagram, family tree, ahnentafel, tree list, div col,
    div col end, colbegin, colend, col-begin, col-end, col-break, col-2, col-3, columns-list, col-start,
    multicol, multicol-break, multicol-end, cob, col begin, col end, collapse top, collapse bottom, hidden
    begin, hidden end, hs, hs2, ntsh, dtsh, sort hidden, shy, soft hyphen, wbr, zwsp, zero width space, 0ws,
    word joiner, wj, hid, nocat, nomobile, tl, tlx, tlp, tnull, user link, ping, re, use dmy dates, use mdy
    dates, use british english, use american english, engvarb, coord missing, coord-missing, location map,
    mapframe, maplink, openstreetmap, imdb name, imdb title, official website, official, url, official url,
    webarchive, wayback, find a grave, goodreads author, librivox author, gutenberg author, internet archive
    author, ol author, worldcat id, discogs artist, musicbrainz artist, allmusic, twitter, facebook, youtube,
    subscription required, subscription, registration required, closed access, open access, free access,
    paywall, lang icon, language icon, in lang, inlang, es icon, fr icon, de icon, it icon, en icon, ja icon, ru
    icon, link language, doi, pmid, pmc, arxiv, jstor, bibcode, hdl, asin, lccn, zbl, mr, ssrn, s2cid, google
    books, gbooks, legend-line, color box, colorbox, colour box, box, color sample, bartable, bar box, stars,
    rating, rating-5, film rating, won, nom, nominated, pending, tba, n/a, na, dunno, empty section, expand
    section, section stub, excerpt, transcluded section, lstpage, bots, wide image, tall image, css image crop,
    gallery, start box, end box, contradict, coi inline, spoiler, endspoiler, clade, cladex, taxobox, automatic
    taxobox, speciesbox, geobox, chembox, drugbox, starbox begin, elementbox, canon, harvc, wikicite, page
    numbers, pages, abbr list, abbreviations, hdr, top icon, coat of arms icon, nobots, dynamic list, dynlist,
    incomplete list, expand list, dn
""")
"""Templates that show no words of the running text: notes to editors, references, boxes, icons, links to other sites."""
SILENT_PREFIXES = (
    "cite ",
    "cite-",
    "ipa-",
    "ipac-",
    "ipa ",
    "infobox",
    "taxobox",
    "navbox",
    "use ",
    "r from ",
    "r to ",
    "pp-",
    "coord ",
    "sister",
    "wikisource",
    "wiktionary",
    "commons",
    "flagicon",
    "location map",
    "s-",
    "external ",
    "harv",
    "sfn",
    "efn",
    "ref ",
    "refimprove",
    "expand ",
    "cleanup",
    "pov",
    "#",
    "portal",
    "about",
    "redirect",
    "anchor",
    "inflation",
    "collapsible ",
    "mw-",
    "unreferenced",
    "copied",
    "translated",
    "see ",
    "main ",
)
SILENT_SUFFIXES = (
    " needed",
    "-inline",
    " inline",
    "?",
    "-stub",
    " stub",
    " icon",
    "/ref",
    " box",
    " sidebar",
    " navbox",
    " refs",
)
