// The documents of one tenant: Markdown files cut at their headings, ranked by BM25.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Passage {
  id: string;
  filename: string;
  title: string;
  text: string;
}

const STOP = new Set(
  ("a an and are as at be by can do does for from has have how i in is it its my not of on or that the their this to was what " +
    "when where which who why will with you your").split(" "),
);

function terms(text: string): string[] {
  const words = text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const singular = (word: string) => (word.length > 3 && /[^s]s$/.test(word) ? word.slice(0, -1) : word);
  return words.filter((word) => !STOP.has(word)).map(singular);
}

function count(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const term of terms(text)) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}

export class Documents {
  private readonly passages: { passage: Passage; counts: Map<string, number>; length: number }[] = [];
  private readonly mean: number;

  constructor(folder: string) {
    for (const filename of readdirSync(folder).sort()) {
      if (!filename.endsWith(".md")) continue;
      const [head, ...sections] = readFileSync(join(folder, filename), "utf8").split(/^## /m);
      const title = head.trim().replace(/^# /, "");
      sections.forEach((section, index) => {
        const [heading, ...lines] = section.split("\n");
        const text = lines.join("\n").trim();
        const passage = { id: `${filename.slice(0, -3)}#${index + 1}`, filename, title: `${title}: ${heading}`, text };
        const counts = count(`${passage.title} ${text}`);
        this.passages.push({ passage, counts, length: [...counts.values()].reduce((sum, n) => sum + n, 0) });
      });
    }
    this.mean = this.passages.reduce((sum, one) => sum + one.length, 0) / Math.max(this.passages.length, 1);
  }

  search(query: string, most: number): Passage[] {
    const wanted = [...new Set(terms(query))];
    const total = this.passages.length;
    const weight = new Map(
      wanted.map((word) => {
        const held = this.passages.filter(({ counts }) => counts.has(word)).length;
        return [word, Math.log(1 + (total - held + 0.5) / (held + 0.5))];
      }),
    );
    const scored = this.passages.map(({ passage, counts, length }) => {
      const norm = 1.2 * (0.25 + (0.75 * length) / this.mean);
      const part = (word: string) => ((weight.get(word) ?? 0) * (counts.get(word) ?? 0) * 2.2) / ((counts.get(word) ?? 0) + norm);
      return { passage, score: wanted.reduce((sum, word) => sum + part(word), 0) };
    });
    return scored
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, most)
      .map(({ passage }) => passage);
  }
}
