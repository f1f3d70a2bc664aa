"""Texts as a reader compares them, and the citations in them."""
import re
import unicodedata

INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
SAME = str.maketrans({**dict.fromkeys("‘’‛ʼ", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑‒–−", "-")})
DIGITS = str.maketrans({chr(zero + at): str(at) for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for at in range(10)} | {"\u066b": ".", "\u066c": ","})


def normalised(text):
    """NFC, folded case, plain quotation marks and hyphens, no emphasis, single spaces."""
    text = INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(SAME)
    text = "".join(chr(ord(one) - 0xFEE0) if "\uff01" <= one <= "\uff5e" else one for one in text).translate(DIGITS)
    text = re.sub(r"`+|(?<!\S)(?:\*{1,3}|_{1,3}|~~)(?=\S)|(?<=\S)(?:\*{1,3}|_{1,3}|~~)(?!\w)|(?<!\w)(?:\*{1,3}|_{1,3})(?=\w)", "", text)
    return " ".join(unicodedata.normalize("NFC", text.casefold()).split())


CURRENCY = "[$¢-¥\u20a0-\u20cf]"
CODES = "usd eur gbp chf jpy cny krw inr aud cad brl sek nok dkk pln czk rub try kr rs".split()


def ungrouped(text):
    """Without separators between thousands: `1 450` and `1'450` are `1450`; `2 100ml bottles` are two numbers."""
    group = r"(?<![^\W_])(?<![.,:/])(?<![^\W_]-)[1-9][0-9]{0,2}(?:([ \u00a0\u2009\u202f'’ʼ])[0-9]{3}(?![0-9]))(?:\1[0-9]{3}(?![0-9]))*"

    def joined(found):
        after, separator = text[found.end():], found.group(1)
        if re.match(f"{separator}[0-9]", after) or (separator == " " and re.match(r"[^\W_]|-[^\W\d_]", after)):
            return found.group()
        return found.group().replace(separator, "")

    return re.sub(group, joined, text)


def lower(letter):
    return letter.islower()


def word_before(text, inside):
    start = len(text)
    while start and inside(text[start - 1]):
        start -= 1
    return text[start:]


def minus(text, at):
    """Whether a hyphen at `at` is a sign: it joins no word, number, or unit of a number (`5%-10%`) to what follows."""
    return text[at:at + 1] == "-" and not re.search(rf"(?:[^\W_]|[)\]]|[0-9] ?(?:[%°]|{CURRENCY}))\Z", text[:at])


def signed(before):
    """Whether a minus stands before the currency before a number: `-$`, `-us$`, `-eur `."""
    start = len(before) - before.endswith(" ")
    if re.search(CURRENCY + r"\Z", before[:start]):
        start -= 1
        start -= len(word_before(before[:start], lower))
    else:
        code = word_before(before[:start], lower)
        if code not in CODES:
            return False
        start -= len(code)
    return start > 0 and minus(before, start - 1)


def coded(before):
    """Whether a number is within a word, as in `qx45`, and no currency, version or unit stands before it."""
    word = word_before(before, lambda one: one.islower() or one in "0123456789_")
    return bool(word) and word not in CODES + ["v"] and (word == "0x" or not re.fullmatch(r"[0-9](?:.*[0-9])?(?:x|d|h|m|min)", word))


def scaled(after):
    """Whether what follows a number makes another of it: `45k`, `45e3`, `45½`."""
    word = re.match(r"[^\W]*", after).group()
    word = word[:next((at for at, one in enumerate(word) if not (one.islower() or one in "0123456789_")), len(word))]
    return bool(re.match(r"[¼-¾⅐-⅞]|e[+-][0-9]", after) or re.fullmatch(r"e[0-9]+", word)) or word in ("k", "bn", "mn", "mio", "mrd", "tn")


def units(text):
    """Numbers as values, everything else letter by letter: `45` is in neither `1450`, `45.5`, `-$45`, `45k` nor `qx45`."""
    found, at = [], 0
    for number in re.finditer(r"(?:(?<![^\W_])(?<![_.)\]])\.)?[0-9]+(?:[.,][0-9]+)*", text):
        own = number.start() > at and minus(text, number.start() - 1)
        found += text[at:number.start() - own]
        before = text[:number.start()]
        sign = "-" if own or signed(before) else ""
        found.append((sign + value(number.group()), not own and coded(before), scaled(text[number.end():])))
        at = number.end()
    return found + list(text[at:])


def value(written):
    if written.startswith("."):
        written = "0" + written
    if re.fullmatch(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+", written):
        written = written.replace(".", "").replace(",", ".")
    if re.fullmatch(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?", written):
        written = written.replace(",", "")
    if re.fullmatch(r"[0-9]+[.,][0-9]+", written):
        return written.replace(",", ".").rstrip("0").rstrip(".")
    return written


def contains(text, part):
    text, part = units(normalised(ungrouped(text))), units(normalised(ungrouped(part)))
    return bool(part) and any(text[at:at + len(part)] == part for at in range(len(text) - len(part) + 1))


def folded(text):
    return " ".join(re.findall(r"\w+", text.casefold()))


def without_code(text):
    return re.sub(r"```.*?(?:```|\Z)|`(?!https?:)[^`]*`", " ", text, flags=re.S)


def marks(text):
    """The citations of a text: (`number`, n, the four words before it), (`id`, name) and (`address`, url)."""
    found, text = [], without_code(text)
    for bracket in re.finditer(r"\[([^\[\]]{1,120})\]", text):
        inside = bracket.group(1).strip()
        if re.fullmatch(r"\S*[^\W\d]\S*#\d+|learned:\S+", inside):
            found.append(("id", inside))
        elif re.fullmatch(r"\d+(?:\s*[,;-]\s*\d+)*", inside) and not re.search(r"[=:]\s*$", text[: bracket.start()]):
            words = [w.lower() for w in re.findall(r"[^\W_]+", text[: bracket.start()]) if not w.isdigit()][-4:]
            found += [("number", number, words) for number in expanded(inside)]
    return found + [("address", url) for url in addresses(text)]


def expanded(inside):
    numbers = []
    for item in re.split(r"[,;]", inside):
        ends = [int(end) for end in item.split("-")]
        numbers += range(ends[0], ends[-1] + 1)
    return numbers


def addresses(text):
    return [url.rstrip(".,;:!?*_") for url in re.findall(r"https?://[^\s<>\"'`()\[\]{}|]*", text, flags=re.I)]


def numbers(text):
    return [mark[1] for mark in marks(text) if mark[0] == "number"]


SUBJECTLESS = set(
    "about according after also been before being could does during each find from have here into long many more most much must only "
    "other over says should some such than that their them then there these they this those until very were what when where which while "
    "will with would your".split()
)


def subject_words(text):
    """Words of four letters and more, and those with a digit, that carry the subject of a text."""
    words = {word.lower() for word in re.findall(r"[^\W_]+", text)}
    return {word for word in words if (len(word) > 3 or re.search(r"\d", word)) and word not in SUBJECTLESS}


# Words without a subject, as the documentation lists them: English, German, French, Spanish, and what matches nearly every document.
FUNCTION = set(
    "a aber about again all alle also am an and answer answers any are article as at au auch auf aus avec be been bei best bitte but by can "
    "ce como con content could cual cuanto cuál cuánto cómo danke das dass data de del dem den der des detail details did die do document "
    "documents does du durch ein eine einem einen einer el en er es est et exactly example explain explained fact facts favor find for from "
    "für general get give good guide had has hat have hello help hi how ich if ihr im in info information into is ist it item its just "
    "keyword keywords kindly knowledge la las le les list look los mais man many may me merci mi mir misc mit more much must my nach need "
    "new nicht no not now ob oder of on only or other our page para please pls plz por pour problem quand que quel quelle query question "
    "questions qui qué really result results search should show si sich sie sind so some source sources stuff tell text than thank thanks "
    "that the their them then there these they thing things this thx tip tips to too topic topics um un una und une up us use user various "
    "vom von vous wann want warum was we welche welchem welchen welcher welches wer were what when where which who why wie wieso wieviel "
    "will wir wird with wo would you your zu zum zur à über".split()
)


def words_of(text):
    """Words in lower case with inner hyphens."""
    found = re.split(r"[^\w-]|_", unicodedata.normalize("NFKC", text or "").lower())
    return [word for word in (one.strip("-") for one in found) if word]


def content(text):
    """Words with a subject, without an English plural."""
    return {re.sub(r"(?<=..[^s])s$", "", word) for word in words_of(text) if word not in FUNCTION}
