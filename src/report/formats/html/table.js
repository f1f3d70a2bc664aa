"use strict";
// The trials table: rows are arrays as rows.rs writes them; filter.js says which it shows. Data reaches the page as text only.
// Direction overrides and control characters are shown instead of obeyed.
const TREACHEROUS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const el = (tag, attributes, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== "") node.append(typeof child === "string" ? child.replace(TREACHEROUS, "\ufffd") : child);
  }
  return node;
};
const SVG = "http://www.w3.org/2000/svg";
const VERDICTS = [["ERROR", "error"], ["FAIL", "fail"], ["INCONCLUSIVE", "undecided"], ["NOT_MEASURED", "unmeasured"], ["PASS", "pass"]];
const badge = (place, word) => {
  const [name, shape] = VERDICTS[place];
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", "#shape-" + shape);
  svg.append(use);
  return el("span", { class: "badge " + shape }, svg, word || name);
};
const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
const duration = (us) => {
  if (us < 995) return us === 0 ? "0 ms" : (us / 1e3).toFixed(2) + " ms";
  if (us < 9950) return (us / 1e3).toFixed(1) + " ms";
  if (us < 999500) return (us / 1e3).toFixed(0) + " ms";
  if (us < 119995000) return (us / 1e6).toFixed(2) + " s";
  const whole = Math.round(us / 1e6);
  return Math.floor(whole / 60) + " min " + String(whole % 60).padStart(2, "0") + " s";
};
const data = JSON.parse(document.getElementById("data").textContent);
const trials = data.rows.map((row, ordinal) => {
  const [id, scenario, kase, flow, variant, repetition, control, verdict, turns, model, tool, transport, retried, tooled, input, output, slowest, took, failed, departures, error, why, flawed] = row;
  const name = (number) => data.names[number];
  const lane = name(flow) + "." + name(variant) + "." + repetition + (control ? ".control" : "");
  const trial = { ordinal, scenario: name(scenario), case: name(kase), variant: name(variant), lane, verdict, turns, model, tool, transport, retried, tooled, input, output, slowest, took, failed: failed + departures, error: error || "", why: why || "", flawed };
  trial.id = id || trial.scenario + "/" + trial.case + "/" + lane;
  trial.retries = transport + retried + tooled;
  trial.tokens = input === null && output === null ? null : (input || 0) + (output || 0);
  return trial;
});
// What criteria say of a trial: criterion, cause, unit and note of each violation.
const brokenBy = (trial) => data.broken[trial.ordinal] || [];
const byId = new Map(trials.map((trial) => [trial.id, trial]));
const hrefOf = (trial) => "#trial=" + encodeURIComponent(trial.id).replace(/%2F/g, "/");
const PAGE = 50;
const COLUMNS = [
  ["verdict", "Verdict", (t) => badge(t.verdict)],
  ["id", "Trial", (t) => [el("a", { href: hrefOf(t) }, el("bdi", {}, t.scenario + "/" + t.case)), el("bdi", { class: "sub" }, t.lane), t.error || t.why ? el("bdi", { class: "sub" }, (t.error || t.why).slice(0, 200)) : null]],
  ["turns", "Turns", (t) => count(t.turns)],
  ["model", "Model calls", (t) => count(t.model)],
  ["tool", "Tool calls", (t) => count(t.tool)],
  ["retries", "Retries", (t) => t.retries ? [["transport", t.transport], ["model", t.retried], ["tool", t.tooled]].filter((one) => one[1]).map((one) => one[1] + " " + one[0]).join(", ") : "0"],
  ["tokens", "Tokens", (t) => t.tokens === null ? "unknown" : count(t.tokens)],
  ["slowest", "Slowest turn", (t) => t.slowest ? duration(t.slowest) : "–"],
  ["failed", "Failed checks", (t) => count(t.failed)],
];
const view = { text: "", verdict: "", scenario: "", variant: "", cause: "", slow: "", flawed: "", sort: "verdict", down: false, page: 0 };
const table = document.getElementById("table");
let current = trials;
const pagesOf = document.getElementById("pages");
const drawTable = () => {
  if (!table) return;
  current = shownTrials();
  const pages = Math.max(1, Math.ceil(current.length / PAGE));
  view.page = Math.min(view.page, pages - 1);
  const head = COLUMNS.map(([key, label], index) => {
    const sorted = view.sort === key;
    const button = el("button", { type: "button" }, label + (sorted ? (view.down ? " ↓" : " ↑") : ""));
    button.addEventListener("click", () => {
      view.down = sorted ? !view.down : index > 1;
      view.sort = key;
      view.page = 0;
      drawTable();
      keepAddress();
      table.tHead.rows[0].cells[index].querySelector("button").focus();
    });
    return el("th", { scope: "col", role: "columnheader", class: index > 1 ? "num" : null, "aria-sort": sorted ? (view.down ? "descending" : "ascending") : "none" }, button);
  });
  table.tHead.replaceChildren(el("tr", { role: "row" }, head));
  const rows = current.slice(view.page * PAGE, view.page * PAGE + PAGE).map((trial) => el("tr", { role: "row" }, COLUMNS.map(([, label, cell], index) => index === 1 ? el("th", { scope: "row", role: "rowheader" }, cell(trial)) : el("td", { role: "cell", class: index > 1 ? "num" : null, "data-label": index > 1 ? label : null }, cell(trial)))));
  table.tBodies[0].replaceChildren(...rows);
  document.getElementById("found").textContent = current.length === 0 ? "No trial matches." : count(current.length) + (current.length === trials.length ? " trials" : " of " + count(trials.length) + " trials");
  const step = (label, to) => {
    const button = el("button", { type: "button" }, label);
    button.disabled = to < 0 || to >= pages;
    button.addEventListener("click", () => { view.page = to; drawTable(); document.getElementById("trials").scrollIntoView(); });
    return button;
  };
  pagesOf.replaceChildren(...(pages === 1 ? [] : [step("Previous", view.page - 1), el("span", {}, "page " + count(view.page + 1) + " of " + count(pages)), step("Next", view.page + 1)]));
};
