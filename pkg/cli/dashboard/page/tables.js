// The views of money, of Runs and of the lottery as plain tables: all that is known, a row for each.
import { html } from "./vendor/htm-preact.js";
import { Table } from "./parts.js";
import { actions, at, away, hours, localTimes, percent, threat } from "./words.js";

// numbers are columns of amounts, of which those that are not known are empty.
const numbers = (columns) => columns.map(([title, of]) => ({ title, right: true, of: (row) => of(row) ?? "" }));

const when = (instant) => (instant ? at(instant) : "");

// EnvelopeTable shows the envelopes of some owners, in their order.
export const EnvelopeTable = ({ money, owners }) => html`<${Table} plain caption="Envelopes" keyOf=${(e) => `${e.budget}/${e.envelope}`}
  rows=${owners.flatMap(({ owner }) => money.envelopes.filter((e) => e.owner === owner))} columns=${[
  { title: "Envelope", of: (e) => `${e.budget}/${e.envelope}` }, { title: "Owner", of: (e) => e.owner },
  { title: "Below", of: (e) => money.parents[e.owner]?.join(", ") ?? "" }, { title: "Type", of: (e) => e.flavor },
  ...numbers([["GPUs", (e) => e.concurrency], ["Own", (e) => e.ownedGPUs], ["Family", (e) => e.familyGPUs], ["Lent", (e) => e.lentGPUs],
    ["Spare", (e) => e.spareGPUs], ["Overdraft", (e) => e.overdraftGPUs], ["Free", (e) => e.freeGPUs],
    ["GPU-hours spent", (e) => hours(e.spentGPUHours)],
    ["GPU-hours in all", (e) => (e.maxGPUHours === undefined ? "" : hours(e.maxGPUHours))]]),
  { title: "Runs out", of: (e) => when(e.runsOut) }, { title: "Begins", of: (e) => when(e.start) }, { title: "Ends", of: (e) => when(e.end) },
  ...(money.conditions.length > 0 ? [{ title: "What is wrong", long: true, of: (e) => money.conditions.filter((c) => c.owner === e.owner &&
    c.budget === e.budget).map((c) => localTimes(c.message)).join("; ") }] : []),
]}/>`;

// CapTable shows what several envelopes of a Budget may use together.
export const CapTable = ({ money, owners }) => html`<${Table} plain caption="Aggregate caps" keyOf=${(c) => `${c.budget}/${c.cap}`}
  rows=${owners.flatMap(({ owner }) => money.aggregateCaps.filter((c) => c.owner === owner))} columns=${[
  { title: "Cap", of: (c) => `${c.budget}/${c.cap}` }, { title: "Owner", of: (c) => c.owner }, { title: "Type", of: (c) => c.flavor },
  { title: "Envelopes", of: (c) => c.envelopes.join(", ") },
  ...numbers([["GPUs used", (c) => c.usedGPUs], ["GPUs", (c) => c.maxConcurrency], ["GPU-hours spent", (c) => hours(c.spentGPUHours)],
    ["GPU-hours in all", (c) => (c.maxGPUHours === undefined ? "" : hours(c.maxGPUHours))]]),
  { title: "Runs out", of: (c) => when(c.runsOut) },
]}/>`;

const starts = (run, now) => (run.waits?.earliestStart ? `${at(run.waits.earliestStart)} (${away(run.waits.earliestStart, now)})`
  : run.waits ? "no date" : when(run.started));

const ahead = ({ waits }) => (waits?.queue ? `${waits.queue.ahead} of ${waits.queue.of}` : "");

// RunTable shows all that is known of Runs.
export const RunTable = ({ runs, reservations, now, chosen, choose }) => html`<${Table} plain caption="Runs" rows=${runs} keyOf=${(run) => run.key}
  chosen=${chosen} onChoose=${choose} columns=${[
  { title: "Run", of: (run) => `${run.namespace}/${run.name}` }, { title: "Owner", of: (run) => run.owner },
  { title: "Phase", of: (run) => run.phase },
  ...numbers([["GPUs", (run) => run.desired], ["Held", (run) => run.allocated], ["On loan", (run) => run.borrowed]]),
  { title: "Starts or started", of: (run) => starts(run, now) },
  ...numbers([["Ahead of it", ahead],
    ["GPUs missing", (run) => reservations.get(`${run.namespace}/${run.waits?.reservation}`)?.forecast?.deficitGPUs]]),
  { title: "Message", long: true, of: (run) => localTimes(run.waits?.message ?? run.message) },
  { title: "Each alone would help", long: true, of: (run) => run.changes?.map((c) => localTimes(c.what)).join("; ") ?? "" },
  { title: "What may happen", long: true, of: (run) => run.risks?.map((risk) =>
    `${threat(risk)} at ${at(risk.at)} for ${risk.reservation}`).join("; ") ?? "" },
  { title: "Ends at the latest", of: (run) => when(run.ends) },
]}/>`;

const sameRun = (a, b) => a.namespace === b.namespace && a.name === b.name;

// cutRows are what may be cut for a Reservation, and what was: a row for each, and one that is empty where nothing is known of.
const cutRows = (r) => {
  const may = r.conflicts ?? [];
  const isOf = (cut) => (c) => sameRun(c.run, cut.run) && c.action === cut.action;
  const rows = may.map((c) => ({ r, run: c.run, owner: c.owner, action: c.action, may: c.gpus, chance: c.probability,
    cut: r.cuts?.find(isOf(c))?.gpus }));
  const unforeseen = (r.cuts ?? []).filter((cut) => !may.some(isOf(cut)));
  rows.push(...unforeseen.map((cut) => ({ r, run: cut.run, action: cut.action, cut: cut.gpus })));
  return rows.length > 0 ? rows : [{ r }];
};

// CutTable shows Reservations, each with all that may be cut for it.
export const CutTable = ({ reservations, stateOf, chosen, choose }) => html`<${Table} plain caption="What may be cut, and what was"
  rows=${reservations.flatMap(cutRows)} keyOf=${({ r, run, action }) => (run ? `${r.key} ${action} ${run.namespace}/${run.name}` : r.key)}
  chosen=${chosen} choiceOf=${({ r }) => r.key} onChoose=${choose} columns=${[
  { title: "Reservation", of: ({ r }) => r.key }, { title: "For", of: ({ r }) => r.run }, { title: "State", of: ({ r }) => r.state },
  { title: "When", of: ({ r }) => at(r.activatedAt ?? r.earliestStart) }, { title: "Lottery", of: ({ r }) => stateOf(r) },
  { title: "Run", of: ({ run }) => (run ? `${run.namespace}/${run.name}` : "") }, { title: "Owner", of: ({ owner }) => owner ?? "" },
  { title: "What", of: ({ action }) => actions[action] ?? "" },
  ...numbers([["GPUs", ({ may }) => may], ["Chance", ({ chance }) => (chance === undefined ? "" : percent(chance))],
    ["GPUs cut", ({ cut }) => cut]]),
]}/>`;
