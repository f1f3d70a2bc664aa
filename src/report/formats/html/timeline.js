// One trial's page: found by the fragment #trial=ID or #trial=ID&event=N, unpacked from its block, shown as a timeline.
const report = document.getElementById("report");
const page = document.getElementById("trial");
const places = new Map();
data.blocks.forEach((block, number) => block.forEach((ordinal, at) => places.set(ordinal, [number, at])));
const gunzip = (coded) => {
  const bytes = Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text().then(JSON.parse);
};
const unpacked = new Map();
const unpack = (number) => {
  if (!unpacked.has(number)) unpacked.set(number, gunzip(document.querySelectorAll("script.block")[number].textContent));
  return unpacked.get(number);
};
let texts = null;
const commonTexts = () => { texts = texts || gunzip(document.getElementById("texts").textContent); return texts; };
const conversationOf = async (trial) => {
  const place = places.get(trial.ordinal);
  if (!place) return null;
  const [block, common] = await Promise.all([unpack(place[0]), commonTexts()]);
  return { ...block.t[place[1]], text: (value) => (typeof value === "number" ? (value < 0 ? common[-1 - value] : block.s[value]) : value === null || value === undefined ? "" : String(value)) };
};
const quotedWord = (word) => (/^[\w\-./=:@,%+]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'");
// The folder of this page, if it stands where a run wrote it; by its name `ragcheck show` finds a run that is not the newest.
const folder = (/\/(latest|[0-9a-f]{12})\/(index\.html)?$/.exec(location.pathname) || [])[1];
const ownFolder = folder !== "latest" && folder;
const showCommand = (id) => "ragcheck show " + quotedWord((ownFolder ? ownFolder + "/" : "") + id);
const commandOf = (trial) => ["ragcheck run", data.files[trial.scenario], "--only", trial.id, ...(data.seed === 0 ? [] : ["--seed", String(data.seed)])].filter(Boolean).map((word, at) => (at ? quotedWord(word) : word)).join(" ");
// What does not hold, each with the event where it broke: failing checks, criteria, departures, the error. A criterion that a
// failing check explains is named beside it.
const breaksOf = (trial, story, links) => {
  const text = story.text;
  const found = [];
  const put = (verdict, what, seen, event, more) => found.push({ verdict, what, seen, event, also: [], ...more });
  if (story.x) put(0, story.x[0], text(story.x[1]), story.e.length ? story.e.length - 1 : null);
  for (const departure of story.d) put(1, "keeps to the state machine", text(departure), breakOf(story, links, "", text(departure)));
  for (const [what, passed, seen, words] of story.k) if (!passed) put(1, text(words) || text(what), text(seen), breakOf(story, links, "", text(what)), { written: text(what) });
  for (const [criterion, , unit, note] of brokenBy(trial)) {
    const same = found.find((one) => one.written && note.startsWith(one.written));
    if (same) same.also.push(data.criteria[criterion]);
    else put(1, unit, note, breakOf(story, links, unit, note), { criterion: data.criteria[criterion] });
  }
  return found;
};
const ofCriterion = (one) => el("a", { href: "#" + one[0] }, el("bdi", {}, one[1]));
// `answered` is the event whose answer is shown beside the list.
const breakRow = (trial, story, answered, one) => el("li", {}, badge(one.verdict, one.verdict ? "fails" : "ERROR"), el("span", {}, one.criterion ? [ofCriterion(one.criterion), " "] : null, el("span", { class: "t" }, one.what), " ", toEvent(trial, one.event, one.event === null ? "" : "see event " + (one.event + 1) + " of " + story.e.length),
  one.seen && !(one.event === answered && one.seen.startsWith("the answer says: ")) ? el("span", { class: "note t" }, "\n" + one.seen) : null,
  one.also.length ? el("span", { class: "note" }, " so ", one.also.map((other, at) => [at ? ", " : "", ofCriterion(other)]), one.also.length === 1 ? " fails" : " fail") : null));
const heldRow = ([what, , seen], text) => el("li", {}, badge(4, "holds"), el("span", {}, el("span", { class: "t" }, text(what)), text(seen) ? el("span", { class: "note t" }, "\n" + text(seen)) : null));
const heldOf = (story, broke) => {
  const held = story.k.filter((check) => check[1]);
  if (held.length === 0) return broke.length ? null : el("p", { class: "empty" }, story.x ? "Nothing was checked: the trial could not be run to its end." : "This trial expects nothing by itself.");
  const all = el("ul", { class: "checks" }, held.map((check) => heldRow(check, story.text)));
  return el("details", {}, el("summary", {}, count(held.length) + (held.length === 1 ? " check holds" : " checks hold")), all);
};
// What the agent did in a turn, one link for each step.
const STEPS = 12;
const stepsOf = (trial, story, turn) => {
  const text = story.text;
  const tool = (fields) => {
    const [[, name], , outcome, about, hits] = fields;
    if (outcome === "search") return "searched for “" + text(about[0]).slice(0, 90) + "” (" + hits.length + (hits.length === 1 ? " hit)" : " hits)");
    if (outcome === "external") return "asked the external search";
    if (outcome === "indexed") return "learned keywords";
    if (outcome === "responded") return "answered through " + text(name);
    return (GOOD_CALLS.has(outcome) ? "called " : "failed in ") + text(name);
  };
  const words = {
    t: tool,
    f: (fields) => (text(fields[2]) === "free_text" ? "answered in plain text and was reminded" : "got feedback: " + text(fields[2])),
    m: (fields) => (fields[1] ? null : "got no completion"),
    d: (fields) => "went on without " + text(fields[0]),
  };
  const steps = turn.events.map((number) => [number, words[story.e[number][3]]?.(story.e[number][4])]).filter((step) => step[1]);
  const shown = steps.slice(0, STEPS).map(([number, what], at) => [at ? ", then " : "", el("a", { href: eventHref(trial, number) }, el("bdi", {}, what))]);
  return steps.length ? [shown, steps.length > STEPS ? " and " + (steps.length - STEPS) + " more steps" : ""] : null;
};
// The conversation below has the whole text.
const cut = (words) => (words.length > 600 ? words.slice(0, 600) + "…" : words);
const lastOf = (story, turn, kind) => turn.events.filter((number) => story.e[number][3] === kind).pop();
// The turn that broke first, or the last one: what was asked, what the agent did, and what it answered.
const glanceOf = (trial, story, links, broke) => {
  const text = story.text;
  const numbers = broke.map((one) => one.event).filter((number) => number !== null);
  const turn = links.turns.find((one) => one.events.includes(Math.min(...numbers))) || links.turns[links.turns.length - 1];
  if (!turn) return { answered: null, rows: null };
  const [asked, answered] = [lastOf(story, turn, "u"), lastOf(story, turn, "e")];
  const end = answered === undefined ? null : story.e[answered][4];
  const row = (name, ...what) => el("div", {}, el("dt", {}, name), el("dd", { class: "t", dir: "auto" }, what));
  const steps = stepsOf(trial, story, turn);
  return { answered: answered ?? null, rows: el("dl", { class: "glance" }, [
    links.turns.length > 1 ? row("Turn", turn.label) : null,
    asked === undefined ? null : row("Asked", cut(text(story.e[asked][4][0]))),
    steps ? row("Did", steps) : null,
    end === null ? row("Answered", "nothing: the turn did not end") : end[1] ? row("Answered", cut(text(end[2]))) : row("Error", text(end[2]) + ": " + text(end[3])),
  ].filter(Boolean)) };
};
const turnsOf = (trial, story, links, broke) => links.turns.map((one) => {
  const broken = broke.some((what) => one.events.includes(what.event));
  const at = new Map();
  for (const what of broke) if (what.event !== null && !at.has(what.event)) at.set(what.event, (what.criterion ? what.criterion[1] + ": " + (what.seen || what.what) : what.what).slice(0, 300));
  return el("section", { class: broken ? "turn broken" : "turn", tabindex: "-1", "aria-label": one.label },
    el("h3", {}, el("span", {}, el("bdi", {}, one.label.charAt(0).toUpperCase() + one.label.slice(1))), el("span", { class: "soft" }, one.took === null ? "did not end" : duration(one.took)), broken ? el("span", { class: "tag" }, "broke here") : null),
    waterfall(trial, story, one),
    el("ol", { class: "line" }, one.events.map((number) => {
      const [when, conversation, turn, kind, fields] = story.e[number];
      const grades = kind === "e" ? story.g.filter((grade) => grade[0] === conversation && grade[1] === turn) : [];
      return eventRow(when - one.start, kind, fields, { trial, story, links, text: story.text, number, conversation, grades, broke: at });
    })));
});
const storyOf = (trial, story, links, broke, tools) => {
  const text = story.text;
  const [mode, from, when, model, knowledge] = story.v;
  const tenants = [...new Set(story.e.filter((one) => one[3] === "c" && one[4][2] !== null).map((one) => text(one[4][2])))];
  const number = (n, one) => count(n) + " " + one + (n === 1 ? "" : "s");
  const facts = [number(trial.turns, "turn"), number(trial.model, "model call"), number(trial.tool, "tool call"), duration(trial.took), trial.tokens === null ? "tokens unknown" : count(trial.input || 0) + " tokens in, " + count(trial.output || 0) + " out", mode + ", " + text(from), when ? "recorded " + when.slice(0, 16).replace("T", " ") + " UTC" : "not recorded", "model " + text(model), ...(tenants.length ? ["tenant " + tenants.join(", ")] : [])];
  const glance = glanceOf(trial, story, links, broke);
  // An error with details has an article of its own.
  const listed = broke.filter((one) => one.verdict || !story.x || !story.x[2].length);
  const parts = broke.length ? [el("h2", {}, trial.verdict === 0 ? "Why it could not be judged" : "What broke"), listed.length === 0 ? null : el("ul", { class: "checks" }, listed.map((one) => breakRow(trial, story, glance.answered, one)))] : [];
  if (story.x && story.x[2].length) parts.push(el("article", { class: "cause" }, el("h3", {}, badge(0), " ", story.x[0]), el("p", { class: "t" }, text(story.x[1])), el("pre", { tabindex: "0" }, story.x[2].map(text).join("\n"))));
  parts.push(glance.rows, tools, heldOf(story, broke), el("p", { class: "soft" }, el("bdi", {}, facts.join(" · "))), el("h2", { class: "conversation" }, "Conversation"), ...turnsOf(trial, story, links, broke));
  if (story.e.length === 0) parts.push(el("p", { class: "empty" }, "Nothing happened before the trial ended."));
  if (story.c) parts.push(el("p", { class: "soft" }, count(story.c) + " further events are in traces.jsonl."));
  parts.push(el("p", { class: "soft" }, "Events are numbered as ragcheck show numbers them. Trial seed " + story.n + ", knowledge " + knowledge + ". Keys: j and k go to the next and the previous trial, b to where it broke, / to the search."));
  return parts.filter(Boolean);
};
// The trial for an issue or a review: what broke, and what was said.
const markdownOf = (trial, story, broke) => {
  const text = story.text;
  const fence = (words) => words.replace(/\n/g, "\n> ");
  const lines = ["**" + VERDICTS[trial.verdict][0] + "** `" + trial.id + "`", ""];
  for (const one of broke) lines.push("- " + (one.criterion ? "violates " + one.criterion[1] + ": " : "") + one.what + (one.seen ? ": " + one.seen : "") + (one.event === null ? "" : " (event " + (one.event + 1) + ")"));
  if (broke.length) lines.push("");
  for (const [, , , kind, fields] of story.e) {
    if (kind === "u") lines.push("> **User:** " + fence(text(fields[0])), ">");
    if (kind === "t") lines.push("> `" + text(fields[0][1]) + "`: " + fields[2], ">");
    if (kind === "e") lines.push("> **" + (fields[1] ? "Answer" : "Error") + ":** " + fence(text(fields[1] ? fields[2] : fields[3])), "");
  }
  return lines.concat(["```", commandOf(trial), showCommand(trial.id), "```", ""]).join("\n");
};
const copied = (label, words) => {
  const button = el("button", { type: "button" }, label);
  button.addEventListener("click", () => {
    const told = (what) => { button.textContent = what; };
    try { navigator.clipboard.writeText(words()).then(() => told("copied"), () => told(words())); } catch { told(words()); }
  });
  return button;
};
const foldsAround = (place) => {
  const folds = [];
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) folds.push(fold);
  return folds;
};
// Brings a place of the page into view and marks it until another one is.
const aim = (place) => {
  for (const one of page.querySelectorAll(".aimed")) one.classList.remove("aimed");
  if (!place) return;
  for (const fold of foldsAround(place)) fold.open = true;
  place.classList.add("aimed");
  place.scrollIntoView({ block: "center", behavior: "instant" });
  place.focus({ preventScroll: true });
};
// The place of an event; of one without a place of its own (a conversation's beginning) that of the next, else of the last.
const shownEvent = (number) => {
  const rows = [...page.querySelectorAll("[id^=event-]")];
  return rows.find((row) => Number(row.id.slice(6)) >= number) || rows[rows.length - 1];
};
let shownId = null;
let firstBreak = null;
const showTrial = async (id, event) => {
  const goTo = () => { if (event) aim(shownEvent(Number(event))); };
  if (shownId === id && !page.hidden) { goTo(); return; }
  const trial = byId.get(id);
  report.hidden = true;
  page.hidden = false;
  [shownId, firstBreak] = [id, null];
  const back = el("a", { class: "back", href: filterHash() }, "← All trials");
  if (!trial) {
    page.replaceChildren(el("p", { class: "bar-top" }, back), el("p", { class: "empty" }, "This report has no trial of that name."));
    return;
  }
  const at = current.indexOf(trial);
  const step = (label, other) => (other ? el("a", { href: hrefOf(other) }, label) : null);
  const steps = el("div", { class: "steps" }, step("Previous", at > 0 ? current[at - 1] : null), step("Next", at >= 0 ? current[at + 1] : null));
  const about = data.abouts[trial.scenario + "/" + trial.case];
  const tools = el("div", { class: "tools" }, copied("Copy link", () => location.href));
  const head = [el("div", { class: "bar-top" }, back, steps), el("h1", {}, badge(trial.verdict), " ", el("bdi", {}, trial.scenario + "/" + trial.case)), el("p", { class: "soft" }, el("bdi", {}, trial.lane), about ? el("bdi", {}, " · " + about) : null)];
  page.replaceChildren(...head, tools, el("p", { class: "soft" }, "Unpacking…"));
  window.scrollTo(0, 0);
  page.focus({ preventScroll: true });
  let body;
  try {
    const story = await conversationOf(trial);
    if (shownId !== id) return;
    if (story) {
      const links = linksOf(story);
      const broke = breaksOf(trial, story, links);
      const numbers = broke.map((one) => one.event).filter((number) => number !== null);
      firstBreak = numbers.length ? eventHref(trial, Math.min(...numbers)) : null;
      if (firstBreak) tools.prepend(el("a", { class: "jump main", href: firstBreak }, "Jump to where it broke"));
      tools.append(copied("Copy as Markdown", () => markdownOf(trial, story, broke)));
      body = storyOf(trial, story, links, broke, tools);
    } else {
      body = [tools, el("p", { class: "empty" }, "This conversation did not fit into the file. It is in traces.jsonl; ragcheck show prints it.")];
    }
  } catch (error) {
    body = [tools, el("p", { class: "empty" }, "This conversation could not be unpacked here (" + error + "). A current browser can; it is in traces.jsonl too.")];
  }
  tools.append(copied("Copy re-run command", () => commandOf(trial)), copied("Copy show command", () => showCommand(trial.id)));
  if (shownId !== id) return;
  page.replaceChildren(...head, ...body);
  goTo();
};
const unescaped = (text) => {
  try { return decodeURIComponent(text); } catch { return text; }
};
const route = () => {
  const raw = location.hash.slice(1);
  if (raw.startsWith("trial=")) {
    const [id, event] = raw.slice(6).split("&event=");
    showTrial(unescaped(id), event);
    return;
  }
  const returning = !page.hidden;
  report.hidden = false;
  page.hidden = true;
  shownId = null;
  if (!filter) return;
  if (raw.startsWith("trials?")) {
    filterBy(raw.slice(7));
  } else if (raw.startsWith("trials=")) {
    filterBy("verdict=" + raw.slice(7));
  } else if (raw) {
    const place = document.getElementById(unescaped(raw));
    if (!place || !report.contains(place)) return;
    const inside = place.tagName === "TBODY" ? [...place.querySelectorAll(".more > td > details")] : [];
    const closed = [...inside, ...foldsAround(place)].filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
    if (returning || closed.length) place.scrollIntoView({ behavior: "instant" });
  }
};
// Keys: o opens or closes the folds of the report, j and k go through the trials of the table, b to where the trial broke, / to the search.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/" && filter) {
    event.preventDefault();
    if (!page.hidden) location.hash = filterHash();
    setTimeout(() => { filter.elements.text.focus(); filter.scrollIntoView(); }, 0);
  } else if (event.key === "o" && page.hidden) {
    const folds = [...report.querySelectorAll("details.fold")];
    const open = folds.some((fold) => !fold.open);
    for (const fold of folds) fold.open = open;
  } else if (event.key === "b" && firstBreak && !page.hidden) {
    if (location.hash === firstBreak) route(); else location.hash = firstBreak;
  } else if ((event.key === "j" || event.key === "k") && current.length) {
    const at = page.hidden ? -1 : current.findIndex((trial) => trial.id === shownId);
    const to = at + (event.key === "j" ? 1 : -1);
    if (current[to]) location.hash = hrefOf(current[to]);
  }
});
window.addEventListener("hashchange", route);
// On a narrow screen what is wrong comes first; how to mend it opens.
if (matchMedia("(max-width: 600px)").matches) for (const how of document.querySelectorAll(".how")) how.open = false;
// This run may not be the newest one.
if (ownFolder) for (const code of document.querySelectorAll(".commands code")) code.textContent = code.textContent.replace(/^ragcheck show /, `ragcheck show ${ownFolder}/`);
// A report that was copied elsewhere has neither the list of runs nor the history beside it.
if (folder) for (const link of document.querySelectorAll(".beside")) link.hidden = false;
startTable();
route();
