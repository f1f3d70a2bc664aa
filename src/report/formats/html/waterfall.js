// One turn as a waterfall: a row for each call, from its start to its end on the turn's own axis; calls that overlap stand
// over the same stretch, waits between attempts are hatched, and so is the time in which nothing was asked.
const ROWS = 60;
const waterfall = (trial, story, turn) => {
  const text = story.text;
  const calls = turn.events.map((number) => ({ number, event: story.e[number] })).filter((one) => one.event[3] === "m" || one.event[3] === "t");
  if (calls.length === 0) return null;
  const spans = calls.map(({ number, event }) => {
    const [at, , , kind, fields] = event;
    const attempts = kind === "m" ? fields[0][4] : fields[1];
    return { number, kind, from: at - turn.start, took: tookOf(event), attempts, wrong: wentWrong(event), name: kind === "m" ? "model call " + (fields[0][0] + 1) : text(fields[0][1]) };
  });
  const end = Math.max(turn.took || 0, ...spans.map((one) => one.from + one.took));
  if (end === 0) return null;
  const gaps = [];
  let reached = 0;
  let together = 0;
  for (const { from, took } of [...spans].sort((a, b) => a.from - b.from)) {
    if (from > reached) gaps.push([reached, from]);
    else together += Math.max(0, Math.min(reached, from + took) - from);
    reached = Math.max(reached, from + took);
  }
  if (end > reached) gaps.push([reached, end]);
  const stretch = (look, from, took) => {
    const bar = el("i", { class: look });
    bar.style.left = ((from / end) * 100).toFixed(2) + "%";
    bar.style.width = ((took / end) * 100).toFixed(2) + "%";
    return bar;
  };
  const bars = (one) => {
    const parts = [];
    let at = one.from;
    if (one.attempts.length < 2) return [stretch(one.wrong ? "wrong" : one.kind === "m" ? "model" : "tool", one.from, one.took)];
    one.attempts.forEach(([, cause, took, wait]) => {
      parts.push(stretch(cause ? "wrong" : one.kind === "m" ? "model" : "tool", at, took));
      at += took;
      if (wait) { parts.push(stretch("wait", at, wait)); at += wait; }
    });
    return parts;
  };
  const row = (one) => el("li", {}, el("a", { href: eventHref(trial, one.number), title: one.name + ": starts at +" + duration(one.from) + ", takes " + duration(one.took) + (one.attempts.length > 1 ? ", " + one.attempts.length + " attempts" : "") },
    el("span", { class: "name" }, one.wrong ? "✕ " : "", el("bdi", {}, one.name)), el("span", { class: "track", "aria-hidden": "true" }, bars(one)), el("span", { class: "took" }, el("span", { class: "unseen" }, "starts at +" + duration(one.from) + ", takes "), duration(one.took))));
  const idle = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  const own = idle === 0 ? null : el("li", { class: "idle" }, el("span", { class: "name" }, "nothing asked"), el("span", { class: "track", "aria-hidden": "true" }, gaps.filter(([from, to]) => (to - from) / end > 0.002).slice(0, 200).map(([from, to]) => stretch("gap", from, to - from))), el("span", { class: "took" }, duration(idle)));
  const more = spans.length - ROWS;
  return el("div", { class: "fall" },
    el("div", { class: "scale", "aria-hidden": "true" }, el("span", {}, "0"), el("span", {}, duration(end / 2)), el("span", {}, duration(end))),
    el("ol", { "aria-label": "Calls of " + turn.label + " on its time axis" }, spans.slice(0, ROWS).map(row), more > 0 ? el("li", { class: "soft" }, "and " + count(more) + " more calls below") : null, own),
    together > 0 ? el("p", { class: "soft" }, "Calls ran side by side for " + duration(together) + ".") : null);
};
