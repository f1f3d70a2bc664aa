// Which event a message to the model came from, by conversation and digest: a message that is new at a call was made by what
// happened since the call before, in this order.
const MADE_BY = { user: ["u", "f"], assistant: ["m"], tool: ["t", "f"] };
const sendMessages = (story, conversation, shown, sent, since) => {
  const events = since.get(conversation) || [];
  for (const name of shown) {
    const key = conversation + "\n" + name;
    if (sent.has(key)) continue;
    const kinds = MADE_BY[name.split(":")[0]] || ["f"];
    const place = events.findIndex((number) => kinds.includes(story.e[number][3]) && (story.e[number][3] !== "t" || story.e[number][4][0][0] !== null));
    sent.set(key, place < 0 ? undefined : events.splice(place, 1)[0]);
  }
  since.set(conversation, []);
};
// What leads to what in one trial: which event gave a source, which answer cites a hit, which search found again what was
// learned, and at which event a check broke. Events are named by their place, as `ragcheck show` numbers them, less one.
const pushTo = (map, key, value) => { if (!map.has(key)) map.set(key, []); map.get(key).push(value); };
const linksOf = (story) => {
  const text = story.text;
  const [names, given, cited, results, found, passages, turns, sent, since] = Array.from({ length: 9 }, () => new Map());
  const give = (conversation, id, number) => { const key = conversation + "\n" + id; if (!given.has(key)) given.set(key, number); };
  story.e.forEach(([at, conversation, turn, kind, fields], number) => {
    if (kind === "c") { names.set(conversation, text(fields[0])); return; }
    if (kind === "m") sendMessages(story, conversation, (fields[0][5] || []).map(text), sent, since);
    pushTo(since, conversation, number);
    const key = conversation + "." + turn;
    if (!turns.has(key)) turns.set(key, { key, conversation, turn, start: at, took: null, events: [] });
    const one = turns.get(key);
    one.events.push(number);
    if (kind === "e") one.took = fields[0];
    if (kind === "e" && fields[1]) fields[3].forEach(([, id], place) => pushTo(cited, conversation + "\n" + text(id), [number, place + 1]));
    if (kind !== "t") return;
    const [, , outcome, first, second] = fields;
    if (outcome === "search") {
      for (const [id, , , excerpt, learned, whole] of second) {
        give(conversation, text(id), number);
        passages.set(conversation + "\n" + text(id), whole ? text(whole) : text(excerpt));
        if (!learned) continue;
        pushTo(found, learned[1] + "\n" + text(learned[0]), number);
        for (const url of learned[3]) give(conversation, text(url), number);
      }
    } else if (outcome === "external") {
      give(conversation, text(first[0]), number);
      passages.set(conversation + "\n" + text(first[0]), text(first[2]));
      for (const [, url] of second) give(conversation, text(url), number);
      results.set(conversation + "\n" + text(first[0]), number);
    }
  });
  for (const one of turns.values()) one.label = (names.size > 1 ? "conversation " + (names.get(one.conversation) || "") + ", " : "") + "turn " + (one.turn + 1);
  return { names, sent, given, cited, results, found, passages, turns: [...turns.values()] };
};
// Whether an event is one where something went wrong.
const GOOD_CALLS = new Set(["search", "external", "indexed", "responded", "other", "answered"]);
const wentWrong = ([, , , kind, fields]) => kind === "f" || kind === "d" || (kind === "m" && (!fields[1] || fields[2][2] !== null)) || (kind === "t" && !GOOD_CALLS.has(fields[2])) || (kind === "r" && !fields[5]) || (kind === "e" && !fields[1]);
// The event at which something broke: `said` is a check or a note, `label` its turn where it has one.
const breakOf = (story, links, label, said) => {
  const own = links.turns.filter((one) => one.label === label || label.startsWith(one.label + ", ") || (!label && said.startsWith(one.label + ":")));
  const scope = own.length ? own : links.turns;
  const numbers = scope.flatMap((one) => one.events);
  if (numbers.length === 0) return null;
  const event = (number) => story.e[number];
  const called = numbers.filter((number) => event(number)[3] === "t" && said.includes(story.text(event(number)[4][0][1])));
  const unit = /, (call|retry) (\d+) of (\S+)$/.exec(label);
  if (unit) {
    const nth = numbers.filter((number) => (unit[1] === "call" ? event(number)[3] === "t" && story.text(event(number)[4][0][1]) === unit[3] : event(number)[3] === "r" && story.text(event(number)[4][3]) === unit[3]))[unit[2] - 1];
    if (nth !== undefined) return nth;
  }
  const feedback = numbers.find((number) => event(number)[3] === "f");
  if (/needed a reminder|after a reminder/.test(said) && feedback !== undefined) return feedback;
  const search = numbers.filter((number) => event(number)[3] === "t" && event(number)[4][2] === "search");
  if (/was found$|passages? (of|not)/.test(said) && search.length) return search[search.length - 1];
  const last = (list) => list[list.length - 1];
  const ends = numbers.filter((number) => event(number)[3] === "e");
  const wrong = numbers.filter((number) => wentWrong(event(number)));
  if (/within: |^slower than /.test(said)) return numbers.reduce((best, number) => (tookOf(event(number)) > tookOf(event(best)) ? number : best));
  if (/calls\.never/.test(said) && called.length) return called[0];
  if (/-.*->|moved (from|to) `/.test(said)) {
    const moved = numbers.find((number) => event(number)[3] === "s" && [0, 2].some((field) => said.includes("`" + story.text(event(number)[4][field]) + "`")));
    if (moved !== undefined) return moved;
  }
  if (/answer\.|sources\.|reply: |[Cc]ites|\bis (lost|invented|renumbered)\b/.test(said) && ends.length) return last(ends);
  const failed = called.filter((number) => wentWrong(event(number)));
  if (failed.length) return failed[0];
  if (called.length) return last(called);
  return wrong.length ? wrong[0] : ends.length ? last(ends) : last(numbers);
};
const tookOf = ([, , , kind, fields]) => (kind === "m" ? fields[0][2] : kind === "t" ? fields[0][3] : 0);
// A button or link that goes to an event of the trial that is shown.
const eventHref = (trial, number) => hrefOf(trial) + "&event=" + (number + 1);
const toEvent = (trial, number, label) => (number === null || number === undefined ? null : el("a", { class: "jump", href: eventHref(trial, number) }, label || "event " + (number + 1)));
