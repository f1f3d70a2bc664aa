// One trial's page: found by the fragment #trial=ID, unpacked from its block, shown as a timeline.
const report = document.getElementById("report");
const page = document.getElementById("trial");
const places = new Map();
data.blocks.forEach((block, number) => block.forEach((ordinal, at) => places.set(ordinal, [number, at])));
const unpacked = new Map();
const unpack = (number) => {
  if (!unpacked.has(number)) {
    const coded = atob(document.querySelectorAll("script.block")[number].textContent);
    const bytes = Uint8Array.from(coded, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(number, new Response(stream).text().then(JSON.parse));
  }
  return unpacked.get(number);
};
const conversationOf = async (trial) => {
  const place = places.get(trial.ordinal);
  if (!place) return null;
  const block = await unpack(place[0]);
  return { ...block.t[place[1]], text: (value) => (typeof value === "number" ? block.s[value] : value === null || value === undefined ? "" : String(value)) };
};
const facts = (pairs) => el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, el("bdi", {}, value)))));
const jump = (what) => {
  const turn = /^turn (\d+)/.exec(what);
  if (!turn) return null;
  const button = el("button", { type: "button", class: "jump" }, "go to turn " + turn[1]);
  button.addEventListener("click", () => { const place = document.getElementById("turn-" + turn[1]); if (place) { place.scrollIntoView(); place.focus({ preventScroll: true }); } });
  return button;
};
const checkRow = (passed, what, seen) => el("li", {}, badge(passed ? 4 : 1, passed ? "holds" : "fails"), el("span", {}, el("span", { class: "t" }, what), passed ? null : jump(what), seen ? el("span", { class: "note t" }, "\nseen: " + seen) : null));
const checksOf = (story) => {
  const text = story.text;
  const rows = [...story.k].sort((a, b) => a[1] - b[1]).map(([what, passed, seen]) => checkRow(passed, text(what), text(seen)));
  for (const departure of story.d) rows.unshift(checkRow(0, "keeps to the state machine", text(departure)));
  if (rows.length === 0) return el("p", { class: "empty" }, story.x ? "Nothing was checked: the trial could not be run to its end." : "This trial expects nothing by itself.");
  return el("ul", { class: "checks" }, rows);
};
const turnsOf = (story) => {
  const text = story.text;
  const names = new Map();
  const turns = new Map();
  for (const [at, conversation, turn, kind, fields] of story.e) {
    if (kind === "c") { names.set(conversation, text(fields[0])); continue; }
    const key = conversation + "." + turn;
    if (!turns.has(key)) turns.set(key, { conversation, turn, start: at, took: null, events: [] });
    const one = turns.get(key);
    if (kind === "e") one.took = fields[0];
    one.events.push([at, kind, fields]);
  }
  return [...turns.values()].map((one) => {
    const several = names.size > 1 ? (names.get(one.conversation) || "conversation " + (one.conversation + 1)) + ", turn " : "Turn ";
    const length = one.took || Math.max(1, one.events[one.events.length - 1][0] - one.start);
    const broken = story.k.some((check) => !check[1] && text(check[0]).startsWith("turn " + (one.turn + 1) + ":"));
    return el("section", { class: broken ? "turn broken" : "turn", id: one.conversation === 0 ? "turn-" + (one.turn + 1) : null, tabindex: "-1" },
      el("h3", {}, el("span", {}, el("bdi", {}, several), String(one.turn + 1)), el("span", { class: "soft" }, one.took === null ? "did not end" : duration(one.took))),
      el("ol", { class: "line" }, one.events.map(([at, kind, fields]) => eventRow(at - one.start, kind, fields, length, text))));
  });
};
const storyOf = (trial, story) => {
  const text = story.text;
  const [mode, from, when, model, knowledge] = story.v;
  const parts = [facts([["Evidence", mode + ", " + text(from)], ["Recorded", when ? when.slice(0, 16).replace("T", " ") + " UTC" : "not recorded"], ["Model", text(model)], ["Turns", count(trial.turns)], ["Model calls", count(trial.model)], ["Tool calls", count(trial.tool)], ["Length", duration(trial.took)], ["Tokens", trial.tokens === null ? "unknown" : count(trial.input || 0) + " in, " + count(trial.output || 0) + " out"]])];
  if (story.x) parts.push(el("article", { class: "cause" }, el("h3", {}, badge(0), " ", story.x[0]), el("p", { class: "t" }, text(story.x[1])), story.x[2].length ? el("pre", {}, story.x[2].map(text).join("\n")) : null));
  parts.push(el("h2", {}, "Checks"), checksOf(story), el("h2", { class: "conversation" }, "Conversation"), ...turnsOf(story));
  if (story.e.length === 0) parts.push(el("p", { class: "empty" }, "Nothing happened before the trial ended."));
  if (story.c) parts.push(el("p", { class: "soft" }, count(story.c) + " further events are in traces.jsonl."));
  parts.push(el("p", { class: "soft" }, "Trial seed " + story.n + ", knowledge " + knowledge));
  return parts;
};
const showTrial = async (id) => {
  const trial = byId.get(id);
  report.hidden = true;
  page.hidden = false;
  const back = el("a", { class: "back", href: "#trials" }, "← All trials");
  if (!trial) {
    page.replaceChildren(el("p", { class: "bar-top" }, back), el("p", { class: "empty" }, "This report has no trial of that name."));
    return;
  }
  const at = current.indexOf(trial);
  const step = (label, other) => (other ? el("a", { href: hrefOf(other) }, label) : null);
  const steps = el("div", { class: "steps" }, step("Previous", at > 0 ? current[at - 1] : null), step("Next", at >= 0 ? current[at + 1] : null));
  const about = data.abouts[trial.scenario + "/" + trial.case];
  const head = [el("div", { class: "bar-top" }, back, steps), el("h1", {}, badge(trial.verdict), " ", el("bdi", {}, trial.scenario + "/" + trial.case)), el("p", { class: "soft" }, el("bdi", {}, trial.lane), about ? el("bdi", {}, " · " + about) : null)];
  const copied = (label, words) => {
    const button = el("button", { type: "button" }, label);
    button.addEventListener("click", () => navigator.clipboard.writeText(words).then(() => { button.textContent = "copied"; }, () => { button.textContent = words; }));
    return button;
  };
  head.push(el("div", { class: "tools" }, copied("Copy link", location.href), copied("Copy as Markdown", "**" + VERDICTS[trial.verdict][0] + "** `" + trial.id + "`" + (trial.why || trial.error ? ": " + (trial.why || trial.error) : "")), copied("Copy command", "ragcheck run --only '" + trial.id + "'")));
  page.replaceChildren(...head, el("p", { class: "soft" }, "Unpacking…"));
  window.scrollTo(0, 0);
  page.focus({ preventScroll: true });
  let body;
  try {
    const story = await conversationOf(trial);
    body = story ? storyOf(trial, story) : [el("p", { class: "empty" }, "This conversation did not fit into the file. It is in traces.jsonl; ragcheck show prints it.")];
  } catch (error) {
    body = [el("p", { class: "empty" }, "This conversation could not be unpacked here (" + error + "). A current browser can; it is in traces.jsonl too.")];
  }
  if (location.hash === hrefOf(trial) || decoded() === "trial=" + trial.id) page.replaceChildren(...head, ...body);
};
const decoded = () => {
  try { return decodeURIComponent(location.hash.slice(1)); } catch { return location.hash.slice(1); }
};
const route = () => {
  const target = decoded();
  if (target.startsWith("trial=")) { showTrial(target.slice(6)); return; }
  const returning = !page.hidden;
  report.hidden = false;
  page.hidden = true;
  const raw = location.hash.slice(1);
  if (raw.startsWith("trials?") && filter) {
    filterBy(raw.slice(7));
  } else if (target.startsWith("trials=") && filter) {
    filter.reset();
    filter.elements.verdict.value = target.slice(7);
    Object.assign(view, { text: "", scenario: "", variant: "", verdict: filter.elements.verdict.value, page: 0 });
    drawTable();
    document.getElementById("trials").scrollIntoView();
  } else if (returning && target) {
    const place = document.getElementById(target);
    if (place) place.scrollIntoView({ behavior: "instant" });
  }
};
// Keys: j and k go through the trials of the table, / goes to the search.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/" && filter) {
    event.preventDefault();
    if (!page.hidden) location.hash = filterHash();
    setTimeout(() => { filter.elements.text.focus(); filter.scrollIntoView(); }, 0);
  } else if ((event.key === "j" || event.key === "k") && current.length) {
    const at = page.hidden ? -1 : current.findIndex((trial) => decoded() === "trial=" + trial.id);
    const to = at + (event.key === "j" ? 1 : -1);
    if (current[to]) location.hash = hrefOf(current[to]);
  }
});
