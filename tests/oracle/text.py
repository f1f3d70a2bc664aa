"""Texts as a reader compares them, and the citations in them."""
import re
import unicodedata

INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
SAME = str.maketrans({**dict.fromkeys("‘’‛ʼ", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑‒–−", "-")})


def normalised(text):
    """NFC, folded case, plain quotation marks and hyphens, no emphasis, single spaces."""
    text = INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(SAME)
    text = "".join(chr(ord(one) - 0xFEE0) if "\uff01" <= one <= "\uff5e" else one for one in text)
    text = re.sub(r"`+|(?<!\S)(?:\*{1,3}|_{1,3}|~~)(?=\S)|(?<=\S)(?:\*{1,3}|_{1,3}|~~)(?!\w)|(?<!\w)(?:\*{1,3}|_{1,3})(?=\w)", "", text)
    return " ".join(unicodedata.normalize("NFC", text.casefold()).split())


def units(text):
    """Numbers as values, everything else letter by letter: `45` is neither in `1450` nor in `45.5`."""
    found, at = [], 0
    for number in re.finditer(r"(?:(?<![\w)\]])-)?\d+(?:[.,]\d+)*", text):
        found += text[at:number.start()]
        found.append(("number", value(number.group())))
        at = number.end()
    return found + list(text[at:])


def value(written):
    if re.fullmatch(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", written):
        written = written.replace(",", "")
    if re.fullmatch(r"-?\d+[.,]\d+", written):
        return written.replace(",", ".").rstrip("0").rstrip(".")
    return written


def contains(text, part):
    text, part = units(normalised(text)), units(normalised(part))
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
