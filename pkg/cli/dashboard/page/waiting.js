// The view of Runs: those that wait, with all that is known about when they start, and those that may be cut.
import { html } from "./vendor/htm-preact.js";
import { Command, Empty, Gone, Swatch, Table } from "./parts.js";
import { RunTable } from "./tables.js";
import { actions, at, away, command, gpus, localTimes, percent, threat } from "./words.js";

const mineOnly = (rows, hello, mine) => (mine ? rows.filter((run) => run.namespace === hello.namespace) : rows);

const matches = (run, filter) => {
  const words = filter.toLowerCase();
  return !words || `${run.key} ${run.name} ${run.owner} ${run.phase}`.toLowerCase().includes(words);
};

const starts = (run, now) => {
  if (run.waits?.earliestStart) {
    return `${at(run.waits.earliestStart)} (${away(run.waits.earliestStart, now)})`;
  }
  const queue = run.waits?.queue;
  return queue ? `no date; ${queue.ahead} of ${queue.of} are ahead` : "no date";
};

// ends is the probability that a Run is ended by the gravest of its risks, which is the first one.
const ends = (run) => Number(run.risks[0].cuts?.find((cut) => cut.action === "Lottery")?.probability ?? 0);

// graver orders Runs by the gravest of their risks: what is the likeliest to end them, then to cut them.
const graver = (a, b) => ends(b) - ends(a) || b.risks[0].probability - a.risks[0].probability || a.key.localeCompare(b.key);

const Conflicts = ({ reservation }) => html`<${Table} caption="May be cut for it" rows=${reservation.conflicts}
  keyOf=${(c) => `${c.action} ${c.run.namespace}/${c.run.name}`} columns=${[
  { title: "Run", of: (c) => `${c.run.namespace}/${c.run.name}` }, { title: "Owner", of: (c) => c.owner },
  { title: "What", of: (c) => actions[c.action] }, { title: "GPUs", right: true, of: (c) => c.gpus },
  { title: "Chance", right: true, of: (c) => percent(c.probability) }]}/>
  ${reservation.total?.total > reservation.conflicts.length && html`<p>${reservation.total.total - reservation.conflicts.length} more may
    be cut; the Reservation lists all when it activates.</p>`}`;

const Promise = ({ reservation }) => {
  const forecast = reservation.forecast ?? {};
  return html`
    ${forecast.deficitGPUs > 0 && html`<p>${gpus(forecast.deficitGPUs)} are missing${forecast.scope ? ` in ${forecast.scope}` : ""}.</p>`}
    ${forecast.remedies?.length > 0 && html`<p>What will be done:</p><ul>${forecast.remedies.map((r) => html`<li>${localTimes(r)}</li>`)}</ul>`}
    ${reservation.nodes?.length > 0 && html`<p>Where: ${reservation.nodes.slice(0, 12).join(", ")}${reservation.nodes.length > 12
      ? ` and ${reservation.nodes.length - 12} more nodes` : ""}</p>`}
    ${reservation.payers?.length > 0 && html`<p>Paid by ${reservation.payers.map((p) => `${p.budget}/${p.envelope} (${p.gpus})`).join(", ")}</p>`}
    ${reservation.conflicts?.length > 0 && html`<${Conflicts} reservation=${reservation}/>`}`;
};

const Details = ({ run, reservations, now, go }) => {
  const waits = run.waits;
  const own = [...reservations.values()].find((r) => waits && r.key === `${run.namespace}/${waits.reservation}`);
  return html`<aside class="broad">
    <h2>${run.namespace}/${run.name}</h2>
    <p>${run.phase}, ${run.allocated} of ${gpus(run.desired)}${run.gpuType && ` (${run.gpuType})`}, owner ${run.owner}</p>
    ${run.message && html`<p>${localTimes(run.message)}</p>`}
    ${waits && html`<p><b>Starts:</b> ${starts(run, now)}</p>`}
    ${run.changes?.length > 0 && html`<p>Each of these alone would help:</p><ul>${run.changes.map((c) => html`<li>${localTimes(c.what)}</li>`)}</ul>`}
    ${own && html`<${Promise} reservation=${own}/>`}
    ${run.risks?.map((risk) => html`<p class="warn">${threat(risk)} at ${at(risk.at)}
      (${away(risk.at, now)}) for <button class="link" onClick=${() => go("lottery", risk.reservation)}>${risk.reservation}</button></p>`)}
    ${run.moreRisks > 0 && html`<p>${run.moreRisks} more Reservations may cut it.</p>`}
    ${run.ends && html`<p>Its maxDuration ends at ${at(run.ends)} (${away(run.ends, now)}).</p>`}
    <${Command} line=${command("explain", run.key)}/>
    ${waits && html`<${Command} line=${command("plan", run.key)}/>`}
  </aside>`;
};

// Waiting is the view.
export const Waiting = ({ store, colours, filter, chosen, choose, go, asTable, mine, setMine }) => {
  const { runs, reservations } = store.shown.tables;
  const { now } = store;
  const all = mineOnly([...runs.values()], store.hello, mine).filter((run) => matches(run, filter));
  const byStart = (a, b) => (a.waits.earliestStart ?? "9").localeCompare(b.waits.earliestStart ?? "9") ||
    (a.waits.queue?.ahead ?? 0) - (b.waits.queue?.ahead ?? 0) || a.key.localeCompare(b.key);
  const waiting = all.filter((run) => run.waits).sort(byStart);
  const risky = all.filter((run) => run.risks?.length > 0).sort(graver);
  const others = all.filter((run) => !run.waits && !run.risks?.length).sort((a, b) => a.phase.localeCompare(b.phase) * -1 ||
    a.key.localeCompare(b.key));
  const name = { title: "Run", of: (run) => html`<${Swatch} colour=${colours.of(run.key)} mark=${colours.markOf(run.key)}/>${run.namespace}/${run.name}` };
  const owner = { title: "Owner", long: true, of: (run) => run.owner };
  const wide = { title: "GPUs", right: true, of: (run) => run.desired };
  const table = (caption, rows, columns) => rows.length > 0 && html`<${Table} caption=${caption} rows=${rows} keyOf=${(run) => run.key}
    chosen=${chosen} onChoose=${choose} columns=${[name, owner, wide, ...columns]}/>`;
  return html`
    <div class="tools"><label><input type="checkbox" checked=${mine} onChange=${(event) => setMine(event.target.checked)}/>
      only namespace ${store.hello.namespace}</label></div>
    <div class="beside"><div class="scroll">
      ${asTable ? all.length > 0 && html`<${RunTable} runs=${[...risky, ...waiting.filter((run) => !run.risks?.length), ...others]}
        reservations=${reservations} now=${now} chosen=${chosen} choose=${choose}/>` : html`
      ${table("At risk", risky, [{ title: "Chance", right: true, of: (run) => percent(run.risks[0].probability) },
    { title: "What may happen", long: true, of: (run) => threat(run.risks[0]) }, { title: "When", of: (run) => `${at(run.risks[0].at)} (${away(run.risks[0].at, now)})` }])}
      ${table("Waiting", waiting, [{ title: "Starts", of: (run) => starts(run, now) }, { title: "Why it waits", long: true, of: (run) => localTimes(run.waits.message) }])}
      ${table("All others", others, [{ title: "Phase", of: (run) => run.phase }, { title: "Message", long: true, of: (run) => localTimes(run.message) }])}`}
      ${all.length === 0 && html`<${Empty}>There are no Runs that you may read${mine ? " in this namespace" : ""}.<//>`}
    </div>
    ${runs.has(chosen) && html`<${Details} run=${runs.get(chosen)} reservations=${reservations} now=${now} go=${go}/>`}
    ${chosen && !runs.has(chosen) && html`<${Gone} what=${chosen}>There is no such Run that you may read, or it ended more than an hour
      ago. Ask for it with "kubectl runs explain".<//>`}</div>
    <${Command} line="kubectl runs list -A -o wide"/>`;
};
