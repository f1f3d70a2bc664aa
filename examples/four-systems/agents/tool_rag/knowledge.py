"""The documents, cut at their headings and ranked by BM25, and what earlier answers from outside taught."""

import json
import math
import re
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

STOP = set("a an and are as at be by can do does for from has have how i in is it its my not of on or that the their this to"
           " was what when where which who why will with you your".split())


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def singular(word):
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def terms(text):
    return [singular(word) for word in words(text) if word not in STOP]


class Documents:
    """The Markdown files of a folder: one passage for each section."""

    def __init__(self, folder):
        self.passages = []
        for file in sorted(Path(folder).glob("*.md")):
            title, *sections = re.split(r"^## ", file.read_text("utf-8"), flags=re.MULTILINE)
            title = title.strip().lstrip("# ")
            for number, section in enumerate(sections, 1):
                heading, _, text = section.partition("\n")
                self.passages.append({"id": f"{file.stem}#{number}", "title": f"{title}: {heading}", "text": text.strip()})
        self.counts = [Counter(terms(one["title"] + " " + one["text"])) for one in self.passages]
        self.mean = sum(sum(counts.values()) for counts in self.counts) / max(len(self.counts), 1)

    def search(self, query, top_k):
        wanted = set(terms(query))
        held = {word: sum(word in counts for counts in self.counts) for word in wanted}
        scored = []
        for place, counts in enumerate(self.counts):
            norm = 1.2 * (0.25 + 0.75 * sum(counts.values()) / self.mean)
            score = sum(
                math.log(1 + (len(self.counts) - held[word] + 0.5) / (held[word] + 0.5)) * counts[word] * 2.2 / (counts[word] + norm)
                for word in wanted
                if counts[word]
            )
            if score:
                scored.append((-score, place))
        return [self.passages[place] for _, place in sorted(scored)[:top_k]]


@dataclass
class Learned:
    """One answer from outside, with the keywords that lead to it."""

    id: str
    query: str
    answer: str
    citations: list
    keywords: list = field(default_factory=list)
    uses: int = 0
    last_used: float = 0.0


class KeywordIndex:
    """Keywords of answers from outside. It is kept in a file if there is one, and shared by all sessions."""

    def __init__(self, file=None):
        self.file = Path(file) if file else None
        self.lock = threading.Lock()
        self.entries = []
        if self.file and self.file.exists():
            self.entries = [Learned(**entry) for entry in json.loads(self.file.read_text("utf-8"))]

    def add(self, result, query, keywords):
        """Adds keywords for a result; returns how many of them were known already, with the queries they came from."""
        with self.lock:
            known = {keyword for entry in self.entries for keyword in entry.keywords}
            entry = next((one for one in self.entries if one.answer == result["answer"]), None)
            if entry is None:
                entry = Learned(f"learned:{len(self.entries) + 1}", query, result["answer"], result["citations"])
                entry.last_used = time.time()
                self.entries.append(entry)
            entry.keywords = sorted({*entry.keywords, *keywords})
            self.save()
            return sum(keyword in known for keyword in keywords)

    def find(self, query):
        """Entries with a keyword whose words are all in the query, most keywords first."""
        wanted = set(terms(query))
        with self.lock:
            hits = []
            for entry in self.entries:
                matched = [keyword for keyword in entry.keywords if set(terms(keyword)) <= wanted]
                if matched:
                    entry.uses, entry.last_used = entry.uses + 1, time.time()
                    hits.append((-len(matched), entry.id, entry))
            if hits:
                self.save()
            return [entry for _, _, entry in sorted(hits, key=lambda hit: hit[:2])]

    def prune(self, days=180, uses=1):
        """Removes entries that were used less often and are older; returns how many."""
        oldest = time.time() - days * 86_400
        with self.lock:
            kept = [entry for entry in self.entries if entry.uses >= uses or entry.last_used >= oldest]
            removed, self.entries = len(self.entries) - len(kept), kept
            self.save()
            return removed

    def listed(self):
        with self.lock:
            return [asdict(entry) for entry in self.entries]

    def clear(self):
        with self.lock:
            self.entries = []
            self.save()

    def save(self):
        if self.file:
            self.file.write_text(json.dumps([asdict(entry) for entry in self.entries]), "utf-8")
