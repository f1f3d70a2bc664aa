// One event as a row of the timeline; `fields` are what compact.rs writes for its kind.
const say = (kind, ...text) => (text.some(Boolean) ? el("div", { class: "say t " + kind, dir: "auto" }, text) : null);
const head = (what, ...soft) => el("div", { class: "head" }, el("span", { class: "what" }, what), soft.filter(Boolean).map((one) => el("span", { class: "soft" }, one)));
const attemptList = (attempts) => {
  if (attempts.length === 0 || (attempts.length === 1 && !attempts[0][1])) return null;
  return el("ol", { class: "attempts" }, attempts.map(([status, cause, took, wait], at) => el("li", {}, "attempt " + (at + 1) + ": " + (status === null ? "no answer" : "HTTP " + status) + (cause ? ", " + cause : "") + ", " + duration(took) + (wait === null ? "" : "; waited " + duration(wait)))));
};
const pretty = (text) => {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
};
const folded = (label, text, open) => el("details", { open: open ? "" : null }, el("summary", {}, label), el("pre", { class: "t", tabindex: "0" }, text));
const tags = (words, mark) => el("div", { class: "words" }, words.map((word) => el("span", { class: "tag" }, el("bdi", {}, word), mark(word))));
// A message of a request: its role, and its text, which is that of a prompt or of the event that it came from.
const messageRow = (name, shown) => {
  const { text, links, story } = shown;
  const role = el("b", {}, name.split(":")[0]);
  const pre = (words) => el("pre", { class: "t", tabindex: "0" }, words);
  if (Object.hasOwn(data.prompts, name)) return el("li", {}, role, pre(data.prompts[name]));
  const number = links.sent.get(shown.conversation + "\n" + name);
  if (number === undefined) return el("li", {}, role, " ", el("span", { class: "soft" }, "its text is in the recording alone"));
  const [, , , kind, fields] = story.e[number];
  const said = {
    u: () => [pre(text(fields[0]))],
    f: () => [pre(text(fields[3]))],
    m: () => (fields[1] ? [text(fields[2][1]) ? pre(text(fields[2][1])) : null, fields[3].length ? " calls " + fields[3].map(text).join(", ") : null] : []),
    t: () => [" ", el("code", {}, text(fields[0][1])), ...(RESULTS[fields[2]] || refusal)(fields.slice(3), shown)],
  };
  return el("li", {}, role, " ", toEvent(shown.trial, number), said[kind]());
};
// The messages of a request, written when they are asked for.
const messagesOf = (names, shown) => {
  const list = el("ol", { class: "attempts" });
  const fold = el("details", {}, el("summary", {}, count(names.length) + (names.length === 1 ? " message" : " messages") + " to the model"), list);
  fold.addEventListener("toggle", () => { if (!list.firstChild) list.append(...names.map((name) => messageRow(name, shown))); });
  return fold;
};
const modelRow = (fields, of) => {
  const { text } = of;
  const [asked, replied, said] = fields;
  const [call, state, took, choice, attempts, shown, service] = asked;
  const name = "Model call " + (call + 1) + (service === null ? "" : " of " + text(service));
  const where = "in " + text(state) + ", tools " + text(choice);
  const messages = messagesOf(shown.map(text), of);
  if (!replied) return ["wrong", [head(name, duration(took), where), messages, attemptList(attempts), say("refused", "No completion: " + text(said[0]) + ": " + text(said[1]))]];
  const [calls, finish, tokens] = fields.slice(3);
  const [input, cached, output] = tokens;
  const read = input === null ? "input tokens unknown" : count(input) + " input tokens" + (cached ? " (" + count(cached) + " cached)" : "");
  const wrote = output === null ? "output tokens unknown" : count(output) + " output tokens";
  const ended = "ended with " + text(finish) + (calls.length ? ": " + calls.map(text).join(", ") : "");
  return ["model", [head(name, duration(took), read + ", " + wrote), el("div", { class: "soft" }, text(said[0]) + ", " + where + "; " + ended), messages, attemptList(attempts), say("", text(said[1])), said[2] === null ? null : say("refused", "Refusal: " + text(said[2]))]];
};
// The answers that cite what an event gave, as links.
const citedBy = (shown, id) => (shown.links.cited.get(shown.conversation + "\n" + id) || []).map(([number, place]) => toEvent(shown.trial, number, "cited as [" + place + "] in turn " + (shown.story.e[number][2] + 1)));
const hitRow = (hit, shown) => {
  const text = shown.text;
  const [id, title, score, excerpt, learned, whole] = hit;
  const from = learned ? shown.links.results.get(learned[1] + "\n" + text(learned[0])) : undefined;
  const mark = learned ? el("span", { class: "tag learned" }, "learned in conversation " + (learned[1] + 1) + " by " + learned[2].map(text).join(", ")) : null;
  return el("li", {}, el("b", {}, el("bdi", {}, text(title))), " ", el("code", {}, text(id)), " ", el("span", { class: "soft" }, "score " + score), " ", mark, from === undefined ? null : toEvent(shown.trial, from, "learned at event " + (from + 1)), citedBy(shown, text(id)),
    el("span", { class: "t", dir: "auto" }, text(excerpt)), whole ? folded("Whole passage", text(whole), false) : null);
};
const RESULTS = {
  search: (rest, shown) => {
    const { text } = shown;
    const [[query, base], hits, managed] = rest;
    const said = managed ? [el("div", { class: "soft" }, "The service was asked “" + text(managed[1]) + "”: " + managed[0]), say("", text(managed[2])), el("ul", { class: "attempts" }, managed[3].map((note) => el("li", {}, text(note))))] : [];
    return [el("div", { class: "soft" }, hits.length ? hits.length + (hits.length === 1 ? " hit in " : " hits in ") + text(base) + " for “" + text(query) + "”" : "Nothing found in " + text(base) + " for “" + text(query) + "”"), ...said, el("ol", { class: "hits" }, hits.map((hit) => hitRow(hit, shown)))];
  },
  external: (rest, shown) => {
    const { text } = shown;
    const again = shown.links.found.get(shown.conversation + "\n" + text(rest[0][0])) || [];
    return [el("div", { class: "soft" }, text(rest[0][0]) + " from " + text(rest[2]), " ", citedBy(shown, text(rest[0][0])), [...new Set(again)].map((number) => toEvent(shown.trial, number, "found again at event " + (number + 1)))), say("", text(rest[0][2])), el("ol", { class: "attempts" }, rest[1].map(([title, url]) => el("li", {}, el("bdi", {}, text(title)), " ", el("code", {}, text(url)), " ", citedBy(shown, text(url)))))];
  },
  indexed: (rest, shown) => {
    const { text } = shown;
    const merged = new Set(rest[1][1].map(text));
    const back = new Set(rest[2].map(text));
    const of = shown.links.results.get(shown.conversation + "\n" + text(rest[0]));
    return [el("div", { class: "soft" }, "for " + text(rest[0]), " ", toEvent(shown.trial, of, of === undefined ? "" : "event " + (of + 1))), tags(rest[1][0].map(text), (word) => (merged.has(word) ? " · merged" : "") + (back.has(word) ? " · read back" : " · not read back"))];
  },
  responded: () => [el("div", { class: "soft" }, "the response was accepted")],
  other: (rest, { text }) => [folded("Result", pretty(text(rest[0])), false)],
  answered: (rest, { text }) => [el("div", { class: "soft t" }, text(rest[0]))],
  unanswered: (rest, { text }) => [say("refused", text(rest[0]))],
  failed: (rest, { text }) => [say("refused", text(rest[0])), el("div", { class: "soft" }, rest[1] ? "trying again may help" : "trying again does not help")],
};
const refusal = (rest, { text }) => [say("refused", text(rest[0][0]) + ": " + text(rest[0][1])), el("div", { class: "soft t" }, text(rest[0][2]))];
const toolRow = (fields, shown) => {
  const { text } = shown;
  const [asked, attempts, outcome, ...rest] = fields;
  const [call, tool, args, took] = asked;
  const good = GOOD_CALLS.has(outcome);
  const result = (RESULTS[outcome] || refusal)(rest, shown);
  return [good ? "tool" : "wrong", [head(el("code", {}, text(tool)), duration(took), good ? "" : outcome, call === null ? (outcome.endsWith("answered") ? "made by the agent, outside any call" : "made by the flow") : "asked for by model call " + (call + 1)), attemptList(attempts), folded("Arguments", pretty(text(args)), !good), ...result]];
};
// Numbers in brackets, in the spellings that answers use most; each is a button that goes to its source.
const MARKS = /[[【［][#^]?(\d{1,4})(?:†[^\]】]*)?[\]】］]/g;
const withMarks = (answer, sources, number) => {
  const parts = [];
  let from = 0;
  for (const found of answer.matchAll(MARKS)) {
    const place = Number(found[1]);
    parts.push(answer.slice(from, found.index));
    from = found.index + found[0].length;
    if (place < 1 || place > sources) { parts.push(el("span", { class: "citing unknown", title: "no source has this number" }, found[0])); continue; }
    const button = el("button", { type: "button", class: "citing", "aria-label": "source " + place }, found[0]);
    button.addEventListener("click", () => aim(document.getElementById("source-" + number + "-" + place)));
    parts.push(button);
  }
  return [...parts, answer.slice(from)];
};
const sourceRow = (source, place, shown) => {
  const { text, links, conversation } = shown;
  const [kind, id, title, by] = source;
  const key = conversation + "\n" + text(id);
  const giver = text(by) ? links.given.get(key) : undefined;
  const passage = links.passages.get(key);
  return el("li", { id: "source-" + shown.number + "-" + (place + 1), tabindex: "-1" }, el("b", {}, "[" + (place + 1) + "]"), " " + text(kind) + ": ", el("bdi", {}, text(title)), " ", el("code", {}, text(id)), " ",
    text(by) ? el("span", { class: "soft" }, "from ", el("bdi", {}, text(by))) : el("span", { class: "tag" }, "never retrieved"), toEvent(shown.trial, giver), passage ? folded("Its text", passage, false) : null);
};
const gradeRow = ([, , item, value, evidence, reason, model], text) => el("li", {}, el("span", { class: "tag" }, value), " ", el("b", {}, el("bdi", {}, text(item) || "the answer")), " ", el("span", { class: "soft" }, "by ", el("bdi", {}, text(model))), text(evidence) ? el("span", { class: "note t" }, "\n“" + text(evidence) + "”") : null, text(reason) ? el("span", { class: "note t" }, "\n" + text(reason)) : null);
const endRow = (fields, shown) => {
  const { text } = shown;
  const [took, answered, first, second, confidence, used, flaws] = fields;
  if (!answered) return ["wrong", [head("Error to the user", text(first), duration(took)), say("refused", text(second))]];
  const from = (used[0] ? "knowledge base" : "") + (used[0] && used[1] ? " and " : "") + (used[1] ? "external search" : "") || "neither source";
  const sources = second.map((source, place) => sourceRow(source, place, shown));
  const grades = shown.grades.map((grade) => gradeRow(grade, text));
  return ["good", [head("Answer", duration(took), confidence === null ? "no confidence given" : "confidence " + confidence.toFixed(2), "says it used " + from),
    el("div", { class: "cites" }, say("answer", ...withMarks(text(first), second.length, shown.number)), sources.length ? el("ol", { class: "sources" }, sources) : el("div", { class: "soft" }, "no source named")),
    ...flaws.map((flaw) => say("refused", "Citation: " + text(flaw))), grades.length ? el("div", {}, el("h4", {}, "Grades"), el("ul", { class: "grades" }, grades)) : null]];
};
// `shown` is the trial, its links and texts, and where the event stands.
const eventRow = (at, kind, fields, shown) => {
  const { text } = shown;
  const rows = {
    u: () => ["user", [head("User"), say("", text(fields[0]))]],
    s: () => ["state", [el("span", {}, text(fields[0]) + " –" + text(fields[1]) + "→ " + text(fields[2]))]],
    m: () => modelRow(fields, shown),
    t: () => toolRow(fields, shown),
    f: () => ["wrong", [head("Feedback to the model", text(fields[2]), "step " + text(fields[0])), say("", text(fields[3]))]],
    r: () => [fields[5] ? "good" : "wrong", [head("Retry " + fields[2] + " of " + text(fields[3]), fields[0] + " account, episode " + (fields[1] + 1), text(fields[4]), fields[5] ? "recovered" : "did not recover")]],
    d: () => ["wrong", [head("Goes on without " + text(fields[0])), say("", text(fields[1]))]],
    l: () => ["", [head("Log: " + text(fields[0])), say("", text(fields[1]))]],
    e: () => endRow(fields, shown),
  };
  const [look, parts] = rows[kind]();
  const name = String(shown.number + 1);
  return el("li", { id: "event-" + name, tabindex: "-1", class: shown.broke.has(shown.number) ? "broke" : null }, el("a", { class: "at", href: eventHref(shown.trial, shown.number), title: "event " + name + ": a link to it" }, el("time", {}, "+" + duration(at)), el("span", { class: "number" }, "#" + name)), el("div", { class: look }, shown.broke.has(shown.number) ? el("p", { class: "here" }, "It broke here: " + shown.broke.get(shown.number)) : null, parts));
};
