// One event as a row of the timeline; `fields` are what compact.rs writes for its kind.
const say = (kind, text) => (text ? el("div", { class: "say t " + kind, dir: "auto" }, text) : null);
const head = (what, ...soft) => el("div", { class: "head" }, el("span", { class: "what" }, what), soft.filter(Boolean).map((one) => el("span", { class: "soft" }, one)));
const gauge = (took, length) => {
  const bar = el("i", {});
  bar.style.width = Math.min(100, (took / length) * 100).toFixed(1) + "%";
  return el("div", { class: "gauge", "aria-hidden": "true" }, bar);
};
const attemptList = (attempts) => {
  if (attempts.length === 0 || (attempts.length === 1 && !attempts[0][1])) return null;
  return el("ol", { class: "attempts" }, attempts.map(([status, cause, took, wait], at) => el("li", {}, "attempt " + (at + 1) + ": " + (status === null ? "no answer" : "HTTP " + status) + (cause ? ", " + cause : "") + ", " + duration(took) + (wait === null ? "" : "; waited " + duration(wait)))));
};
const pretty = (text) => {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
};
const folded = (label, text, open) => el("details", { open: open ? "" : null }, el("summary", {}, label), el("pre", { class: "t", tabindex: "0" }, text));
const tags = (words, mark) => el("div", { class: "words" }, words.map((word) => el("span", { class: "tag" }, el("bdi", {}, word), mark(word))));
const modelRow = (fields, length, text) => {
  const [asked, replied, said] = fields;
  const [call, state, took, choice, attempts, shown] = asked;
  const name = "Model call " + (call + 1);
  const where = "in " + text(state) + ", tools " + text(choice) + ", " + shown + " messages shown";
  if (!replied) return ["wrong", [head(name, duration(took), where), gauge(took, length), attemptList(attempts), say("refused", "No completion: " + text(said[0]) + ": " + text(said[1]))]];
  const [calls, finish, tokens] = fields.slice(3);
  const [input, cached, output] = tokens;
  const read = input === null ? "tokens read unknown" : count(input) + " tokens read" + (cached ? " (" + count(cached) + " cached)" : "");
  const wrote = output === null ? "tokens written unknown" : count(output) + " written";
  const ended = "ended with " + text(finish) + (calls.length ? ": " + calls.map(text).join(", ") : "");
  return ["model", [head(name, duration(took), read + ", " + wrote), gauge(took, length), el("div", { class: "soft" }, text(said[0]) + ", " + where + "; " + ended), attemptList(attempts), say("", text(said[1])), said[2] === null ? null : say("refused", "Refusal: " + text(said[2]))]];
};
const hitRow = (hit, text) => {
  const [id, title, score, excerpt, learned] = hit;
  const mark = learned ? el("span", { class: "tag learned" }, "learned in conversation " + (learned[1] + 1) + " by " + learned[2].map(text).join(", ")) : null;
  return el("li", {}, el("b", {}, el("bdi", {}, text(title))), " ", el("code", {}, text(id)), " ", el("span", { class: "soft" }, "score " + score), " ", mark, el("span", { class: "t", dir: "auto" }, text(excerpt)));
};
const RESULTS = {
  search: (rest, text) => [el("div", { class: "soft" }, rest[1].length ? rest[1].length + " hits in " + text(rest[0][1]) + " for “" + text(rest[0][0]) + "”" : "Nothing found in " + text(rest[0][1]) + " for “" + text(rest[0][0]) + "”"), el("ol", { class: "hits" }, rest[1].map((hit) => hitRow(hit, text)))],
  external: (rest, text) => [el("div", { class: "soft" }, text(rest[0][0]) + " from " + text(rest[2])), say("", text(rest[0][2])), el("ul", { class: "attempts" }, rest[1].map(([title, url]) => el("li", {}, el("bdi", {}, text(title)), " ", el("code", {}, text(url)))))],
  indexed: (rest, text) => {
    const merged = new Set(rest[1][1].map(text));
    const back = new Set(rest[2].map(text));
    return [el("div", { class: "soft" }, "for " + text(rest[0])), tags(rest[1][0].map(text), (word) => (merged.has(word) ? " · merged" : "") + (back.has(word) ? " · read back" : " · not read back"))];
  },
  responded: () => [el("div", { class: "soft" }, "the response was accepted")],
  other: (rest, text) => [folded("Result", pretty(text(rest[0])), false)],
  failed: (rest, text) => [say("refused", text(rest[0])), el("div", { class: "soft" }, rest[1] ? "trying again may help" : "trying again does not help")],
};
const refusal = (rest, text) => [say("refused", text(rest[0][0]) + ": " + text(rest[0][1])), el("div", { class: "soft t" }, text(rest[0][2]))];
const toolRow = (fields, length, text) => {
  const [asked, attempts, outcome, ...rest] = fields;
  const [call, tool, args, took] = asked;
  const good = outcome !== "rejected" && outcome !== "out of order" && outcome !== "failed";
  const result = (RESULTS[outcome] || refusal)(rest, text);
  return [good ? "tool" : "wrong", [head(el("code", {}, text(tool)), duration(took), good ? "" : outcome, "asked for by model call " + (call + 1)), gauge(took, length), attemptList(attempts), folded("Arguments", pretty(text(args)), !good), ...result]];
};
const endRow = (fields, text) => {
  const [took, answered, first, second, confidence, used, flaws] = fields;
  if (!answered) return ["wrong", [head("Error to the user", text(first), duration(took)), say("refused", text(second))]];
  const from = (used[0] ? "knowledge base" : "") + (used[0] && used[1] ? " and " : "") + (used[1] ? "external search" : "") || "neither source";
  const sources = second.map(([kind, id, title, by], at) => el("li", {}, "[" + (at + 1) + "] " + text(kind) + ": ", el("bdi", {}, text(title)), " ", el("code", {}, text(id)), text(by) ? el("span", { class: "soft" }, " from ", el("bdi", {}, text(by))) : el("span", { class: "tag" }, "never retrieved")));
  return ["good", [head("Answer", duration(took), confidence === null ? "no confidence given" : "confidence " + confidence.toFixed(2), "says it used " + from), say("answer", text(first)), sources.length ? el("ul", { class: "attempts" }, sources) : el("div", { class: "soft" }, "no source named"), ...flaws.map((flaw) => say("refused", "Citation: " + text(flaw)))]];
};
const eventRow = (at, kind, fields, length, text) => {
  const rows = {
    u: () => ["user", [head("User"), say("", text(fields[0]))]],
    s: () => ["state", [el("span", {}, text(fields[0]) + " –" + text(fields[1]) + "→ " + text(fields[2]))]],
    m: () => modelRow(fields, length, text),
    t: () => toolRow(fields, length, text),
    f: () => ["wrong", [head("Feedback to the model", text(fields[2]), "step " + text(fields[0])), say("", text(fields[3]))]],
    r: () => [fields[5] ? "good" : "wrong", [head("Retry " + fields[2] + " of " + text(fields[3]), fields[0] + " account, episode " + (fields[1] + 1), text(fields[4]), fields[5] ? "recovered" : "did not recover")]],
    d: () => ["wrong", [head("Goes on without " + text(fields[0])), say("", text(fields[1]))]],
    l: () => ["", [head("Log: " + text(fields[0])), say("", text(fields[1]))]],
    e: () => endRow(fields, text),
  };
  const [look, parts] = rows[kind]();
  return el("li", {}, el("time", {}, "+" + duration(at)), el("div", { class: look }, parts));
};
window.addEventListener("hashchange", route);
startTable();
route();
