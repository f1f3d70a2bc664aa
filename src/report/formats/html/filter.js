// Which trials the table shows: words, verdict, scenario, variant, cause, slow ones, flawed citations; the address holds it.
const filter = document.getElementById("filter");
const FILTERS = ["text", "verdict", "scenario", "variant", "cause", "slow", "flawed"];
// Answers and documents of each trial, in small letters; unpacked while nobody waits, or when something is looked for.
let searchable = null;
let prepared = 0;
const idle = (work) => (window.requestIdleCallback ? requestIdleCallback(work) : setTimeout(work, 20));
// Some milliseconds at a time, so that a key is never waited for.
const prepareWords = () => {
  const until = performance.now() + 8;
  // No text holds a line break: what is looked for in vain is ready to be looked through.
  while (prepared < trials.length && (prepared % 64 || performance.now() < until)) { holds(trials[prepared], "\n"); prepared += 1; }
  if (prepared < trials.length) idle(prepareWords);
};
const fillSearchable = () => {
  if (searchable) return;
  searchable = [];
  gunzip(document.getElementById("searchable").textContent).then(({ s, t }) => {
    searchable = t.map((number) => s[number]);
    if (view.text) drawTable();
  }, () => {}).then(() => idle(prepareWords));
};
const wordsOf = (trial) => {
  if (trial.words === undefined) {
    const place = trial.scenario + "/" + trial.case;
    const notes = brokenBy(trial).map(([criterion, , , note]) => data.criteria[criterion][1] + " " + note).join(" ");
    trial.words = (trial.id + " " + trial.error + " " + trial.why + " " + (data.asks[place] || "") + " " + (data.abouts[place] || "") + " " + notes).toLowerCase();
  }
  return trial.words;
};
const holds = (trial, word) => wordsOf(trial).includes(word) || Boolean(searchable && searchable[trial.ordinal] && searchable[trial.ordinal].includes(word));
// A turn is slow that takes longer than the smallest limit of a criterion; without a limit, one of the slowest 5 %.
const LIMIT = (() => {
  if (data.limit !== null) return data.limit;
  const times = trials.map((trial) => trial.slowest).sort((a, b) => a - b);
  return times.length ? times[Math.floor((times.length - 1) * 0.95)] : 0;
})();
const isSlow = (trial) => trial.slowest > LIMIT;
const order = { key: "", sorted: trials };
const sortedTrials = () => {
  const key = view.sort;
  const sign = view.down ? -1 : 1;
  if (order.key !== key + sign) {
    order.key = key + sign;
    order.sorted = [...trials].sort((a, b) => {
      const [x, y] = [a[key], b[key]];
      if (x === y) return a.ordinal - b.ordinal;
      if (x === null) return 1;
      if (y === null) return -1;
      return (x < y ? -1 : 1) * sign;
    });
  }
  return order.sorted;
};
const shownTrials = () => {
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) fillSearchable();
  const verdict = VERDICTS.findIndex((one) => one[0] === view.verdict);
  const cause = data.causes.indexOf(view.cause);
  return sortedTrials().filter((t) => (view.verdict === "" || t.verdict === verdict) && (view.scenario === "" || t.scenario === view.scenario) && (view.variant === "" || t.variant === view.variant) && (view.slow === "" || isSlow(t)) && (view.flawed === "" || t.flawed) && (view.cause === "" || brokenBy(t).some((one) => one[1] === cause)) && words.every((word) => holds(t, word)));
};
// The filter as the address of this page, so that a link holds it.
const filterHash = () => {
  const words = FILTERS.filter((name) => view[name] !== "").map((name) => name + "=" + encodeURIComponent(view[name]));
  if (view.sort !== "verdict" || view.down) words.push("sort=" + (view.down ? "-" : "") + view.sort);
  return words.length ? "#trials?" + words.join("&") : "#trials";
};
// Browsers refuse many changes of it within some seconds: while somebody types, it is brought up to date now and then.
const CALM = 200;
let keptAt = -CALM;
let keepLater = 0;
const keepAddress = () => {
  clearTimeout(keepLater);
  const since = performance.now() - keptAt;
  if (since < CALM) { keepLater = setTimeout(() => { if (page.hidden) keepAddress(); }, CALM - since); return; }
  keptAt = performance.now();
  history.replaceState(null, "", filterHash());
};
const filterBy = (hash) => {
  const given = new URLSearchParams(hash);
  for (const name of FILTERS) view[name] = given.get(name) || "";
  const sort = given.get("sort") || "verdict";
  view.down = sort.startsWith("-");
  view.sort = COLUMNS.some(([key]) => key === sort.replace(/^-/, "")) ? sort.replace(/^-/, "") : "verdict";
  view.page = 0;
  drawFilter();
  drawTable();
  document.getElementById("trials").scrollIntoView({ behavior: "instant" });
};
const chips = document.getElementById("chips");
const CHIPS = 12;
const counted = (values) => {
  const found = new Map();
  for (const value of values) found.set(value, (found.get(value) || 0) + 1);
  return found;
};
const chipList = () => {
  const all = [];
  VERDICTS.forEach(([word], place) => all.push(["verdict", word, badge(place), trials.filter((t) => t.verdict === place).length]));
  const variants = counted(trials.map((t) => t.variant));
  if (variants.size > 1) for (const [name, number] of [...variants].slice(0, CHIPS)) all.push(["variant", name, el("bdi", {}, name), number]);
  all.push(["slow", "1", "slow: a turn over " + duration(LIMIT), trials.filter(isSlow).length]);
  all.push(["flawed", "1", "flawed citations", trials.filter((t) => t.flawed).length]);
  const causes = counted(trials.flatMap((t) => [...new Set(brokenBy(t).map((one) => one[1]))]));
  for (const [cause, number] of [...causes].sort((a, b) => b[1] - a[1]).slice(0, 4)) all.push(["cause", data.causes[cause], el("bdi", {}, data.causes[cause].slice(0, 60)), number]);
  return all.filter((one) => one[3] > 0);
};
const drawFilter = () => {
  for (const control of filter.elements) if (FILTERS.includes(control.name)) control.value = view[control.name];
  for (const chip of chips.children) chip.setAttribute("aria-pressed", String(view[chip.dataset.name] === chip.dataset.value));
};
const startTable = () => {
  if (!filter) return;
  const options = (name, values) => filter.elements[name].append(...[...new Set(values)].map((value) => el("option", { value }, value.slice(0, 100))));
  options("scenario", trials.map((t) => t.scenario));
  options("variant", trials.map((t) => t.variant));
  options("cause", data.causes);
  const changed = () => { view.page = 0; drawFilter(); drawTable(); keepAddress(); };
  for (const [name, value, label, number] of chipList()) {
    const chip = el("button", { type: "button", class: "pick", "data-name": name, "data-value": value, "aria-pressed": "false" }, label, " ", el("span", { class: "soft" }, count(number)));
    chip.addEventListener("click", () => { view[name] = view[name] === value ? "" : value; changed(); });
    chips.append(chip);
  }
  const read = () => { for (const name of FILTERS) if (filter.elements[name]) view[name] = filter.elements[name].value; changed(); };
  filter.addEventListener("input", read);
  filter.addEventListener("submit", (event) => { event.preventDefault(); read(); });
  filter.elements.text.addEventListener("focus", fillSearchable);
  drawTable();
  window.addEventListener("load", () => idle(fillSearchable));
};
