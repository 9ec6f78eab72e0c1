// The view of time: what held GPUs, what will, windows and maintenance.
import { html, useMemo, useState } from "./vendor/htm-preact.js";
import { useAnswer } from "./answer.js";
import { ink } from "./colours.js";
import { Canvas, Command, Empty, Table, Tip, useKeys } from "./parts.js";
import { toSecond } from "./store.js";
import { at, gpus } from "./words.js";

const hour = 3600e3;
const spans = [["10m", hour / 6], ["1h", hour], ["6h", 6 * hour], ["24h", 24 * hour], ["7d", 168 * hour], ["30d", 720 * hour]];
const line = 18;
const heading = 22;
const axis = 24;
const kinds = { held: "held", ahead: "may hold until its maxDuration", reserved: "reserved", window: "envelope pays",
  maintenance: "maintenance" };

const nameOf = (bar) => `${bar.name}${bar.gpus ? ` ${bar.gpus}` : ""}`;

const endOf = (bar, now) => (bar.to ? Date.parse(bar.to) : bar.kind === "held" ? now : Infinity);

// roomFor is until when a bar of a lane takes its row: where there are not many, its name is to have room behind it too.
const roomFor = (bar, many, now, perPixel) => {
  const needs = (nameOf(bar).length * 6.5 + 8) * perPixel;
  const end = endOf(bar, now);
  return many || end - Date.parse(bar.from) > needs ? end : end + needs;
};

// rowsOf stacks the bars of each lane, so that no two cover each other.
const rowsOf = (bars, now, perPixel) => {
  const lanes = new Map();
  for (const bar of bars) {
    if (!lanes.has(bar.lane)) {
      lanes.set(bar.lane, []);
    }
    lanes.get(bar.lane).push(bar);
  }
  const placed = [];
  const heads = [];
  let y = axis;
  for (const [lane, members] of lanes) {
    heads.push({ lane, y });
    y += heading;
    const ends = [];
    const last = [];
    for (const bar of members) {
      const from = Date.parse(bar.from);
      let row = ends.findIndex((end) => end <= from);
      if (row < 0) {
        row = ends.push(0) - 1;
      }
      ends[row] = bar.to ? roomFor(bar, members.length > 40, now, perPixel) : Infinity;
      const place = { bar, y: y + row * line, next: Infinity };
      if (last[row]) {
        last[row].next = from; // where the one behind it begins
      }
      last[row] = place;
      placed.push(place);
    }
    y += ends.length * line + 6;
  }
  return { placed, heads, height: y };
};

// useBars asks for the bars of a time that is a little longer than the one that is shown, so that it is the same for a while.
const useBars = (store, by, from, to, words) => {
  const step = Math.max(10e3, (to - from) / 20);
  return useAnswer(`/api/time?from=${toSecond(Math.floor(from / step) * step)}&to=${toSecond(Math.ceil(to / step) * step)}&by=${by}` +
    `&filter=${encodeURIComponent(words)}`,
    store.version);
};

// ticks are instants at round distances, so many at most.
const ticks = (from, to, most) => {
  const steps = [60e3, 300e3, 900e3, hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour, 168 * hour];
  const step = steps.find((s) => (to - from) / s <= most) ?? 168 * hour;
  const zone = (t) => new Date(t).getTimezoneOffset() * 60e3; // another one in summer
  const out = [];
  for (let local = Math.ceil((from - zone(from)) / step) * step; local + zone(local + zone(from)) < to; local += step) {
    out.push(local + zone(local + zone(from)));
  }
  return out;
};

const tickWords = (t, long) => new Date(t).toLocaleString(undefined,
  long ? { day: "numeric", month: "short", hour: "2-digit" } : { hour: "2-digit", minute: "2-digit" });

const paintLine = (context, x, from, to, ink, wide) => {
  context.strokeStyle = ink;
  context.lineWidth = wide;
  context.beginPath();
  context.moveTo(x, from);
  context.lineTo(x, to);
  context.stroke();
};

// paintAxis draws lines at round instants and now, over which words are drawn then, and returns what draws the instants' names.
const paintAxis = (context, width, height, { from, to, now, inks }) => {
  const x = (t) => ((t - from) / (to - from)) * width;
  const long = to - from > 30 * hour;
  const round = ticks(from, to, Math.max(1, Math.min(10, width / (long ? 100 : 70))));
  round.forEach((t) => paintLine(context, x(t), 16, height, inks.line, 0.5));
  paintLine(context, x(now), 0, height, inks.bad, 1.5);
  return () => {
    context.clearRect(0, 0, width, 16);
    paintLine(context, x(now), 0, 16, inks.bad, 1.5);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = inks.faint;
    for (const t of round) {
      const words = tickWords(t, long);
      if (x(t) + 3 + context.measureText(words).width < width) {
        context.fillText(words, x(t) + 3, 12);
      }
    }
  };
};

// paintBar draws a bar, with its name in it or, where there is room, behind it.
const paintBar = (context, { bar, y }, left, right, room, view) => {
  const colour = bar.kind === "window" || bar.kind === "maintenance" ? view.inks.faint : view.colours.of(bar.name, bar.owner);
  const high = line - 4;
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 1.5;
  if (bar.kind === "held") {
    context.fillRect(left, y, Math.max(1, right - left), high);
  } else {
    context.setLineDash(bar.kind === "reserved" ? [] : [4, 3]);
    context.strokeRect(left, y + 0.5, Math.max(1, right - left), high - 1);
    context.setLineDash([]);
  }
  const words = nameOf(bar);
  const wide = context.measureText(words).width + 8;
  if (wide < right - left) {
    context.fillStyle = bar.kind === "held" ? view.inks.back : view.inks.text;
    context.fillText(words, left + 4, y + high - 3);
  } else if (right > 0 && wide < room) {
    context.fillStyle = view.inks.text;
    context.fillText(words, right + 4, y + high - 3);
  }
};

const paintTime = (context, width, height, y0, rows, view) => {
  const x = (t) => Math.min(width, Math.max(0, ((t - view.from) / (view.to - view.from)) * width));
  const nameInstants = paintAxis(context, width, height, view);
  context.font = "11px system-ui, sans-serif";
  for (const placed of rows.placed) {
    if (placed.y + line > y0 && placed.y < y0 + height) {
      const { bar } = placed;
      const end = endOf(bar, view.now);
      if (Date.parse(bar.from) >= view.to || end <= view.from) {
        continue;
      }
      paintBar(context, { bar, y: placed.y - y0 }, x(Date.parse(bar.from)), x(end), x(placed.next) - x(end), view);
    }
  }
  context.font = "600 12px system-ui, sans-serif";
  context.fillStyle = view.inks.text;
  for (const head of rows.heads) {
    context.fillText(head.lane, 4, head.y - y0 + 15);
  }
  nameInstants();
};

const barAt = (rows, [, y], t, now) => rows.placed.find(({ bar, y: top }) => y >= top && y < top + line &&
  Date.parse(bar.from) <= t && t <= endOf(bar, now));

const told = (bar) => `${bar.name}${bar.owner ? ` of ${bar.owner}` : ""}: ${kinds[bar.kind]}${bar.gpus ? `, ${gpus(bar.gpus)}` : ""}, ${at(bar.from)} – ` +
  `${bar.to ? at(bar.to) : bar.kind === "held" ? "now" : "open"}${bar.closure ? ` (${bar.closure})` : ""}`;

// spanFor is the shortest span that shows all of a ledger so old, a day at most.
const spanFor = (age) => spans.map(([, s]) => s).find((s) => s * 0.6 > age || s >= 24 * hour) ?? 6 * hour;

// Time is the view.
export const Time = ({ store, colours, filter, asTable }) => {
  const [by, setBy] = useState("domain");
  const [length, setLength] = useState(() => spanFor(store.now - Date.parse(store.about.ledgerFrom)));
  const [middle, setMiddle] = useState(null); // null follows now
  const [tip, setTip] = useState(null);
  const { now } = store;
  const from = (middle ?? now) - length * 0.6;
  const to = from + length;
  const words = filter.toLowerCase();
  const { data, failed } = useBars(store, by, from, to, words);
  const bars = data?.bars;
  const rows = useMemo(() => rowsOf((bars ?? []).filter((bar) =>
    !words || `${bar.name} ${bar.lane}`.toLowerCase().includes(words)), now, length / innerWidth), [bars, words, length]);
  const move = (part) => setMiddle((middle ?? now) + part * length);
  const zoom = (by) => setLength(Math.min(720 * hour, Math.max(hour / 6, length * by)));
  useKeys({ ...(asTable ? {} : { ArrowLeft: () => move(-0.1), ArrowRight: () => move(0.1) }), "+": () => zoom(0.5), "-": () => zoom(2) });
  const point = (where, event) => {
    const t = where && from + (where[0] / event.target.clientWidth) * length;
    const found = where && barAt(rows, where, t, now);
    setTip(found ? { x: event.clientX, y: event.clientY, words: told(found.bar) } : null);
  };
  return html`
    <div class="tools" data-bars=${bars ? rows.placed.length : "reading"}>
      <span>By ${["domain", "owner"].map((b) => html`<button key=${b} aria-pressed=${b === by} onClick=${() => setBy(b)}>${b}</button>`)}</span>
      <span>${spans.map(([name, s]) => html`<button key=${name} aria-pressed=${s === length} onClick=${() => setLength(s)}>${name}</button>`)}</span>
      <span><button onClick=${() => move(-0.5)} aria-label="earlier">◀</button><button onClick=${() => setMiddle(null)}>now</button>
        <button onClick=${() => move(0.5)} aria-label="later">▶</button></span>
      <span class="note">full: held · dashed: until its maxDuration, windows, maintenance · framed: reserved</span>
    </div>
    ${data?.leftOut > 0 && html`<p class="note">${data.leftOut} shorter bars are left out: choose a shorter time, or use the filter.</p>`}
    ${failed && html`<p class="bad">${failed}</p>`}
    ${bars && rows.placed.length === 0 && html`<${Empty}>Nothing held GPUs in this time, and nothing is announced.<//>`}
    ${asTable ? html`<div class="scroll"><${Table} rows=${rows.placed.map(({ bar }) => bar)} keyOf=${(b) => `${b.lane} ${b.kind} ${b.name} ${b.from}`}
      columns=${[{ title: "Lane", of: (b) => b.lane }, { title: "What", of: (b) => b.name }, { title: "Owner", of: (b) => b.owner ?? "" },
    { title: "How", of: (b) => kinds[b.kind] },
    { title: "GPUs", right: true, of: (b) => b.gpus ?? "" }, { title: "From", of: (b) => at(b.from) },
    { title: "To", of: (b) => (b.to ? at(b.to) : "") }, { title: "Ended", of: (b) => b.closure ?? "" }]}/></div>`
    : html`<${Canvas} label="Time axis. Press t for a table." height=${rows.height} depends=${[rows, colours, from, to]}
      draw=${(context, w, h, y) => paintTime(context, w, h, y, rows, { from, to, now, colours, inks: ink() })}
      onPoint=${point}/>`}
    ${tip && html`<${Tip} ...${tip}/>`}
    <${Command} line="kubectl runs plan -A"/>`;
};
