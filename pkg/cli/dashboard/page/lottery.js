// The view of the lottery: each record, computed again here.
import { html, useEffect, useState } from "./vendor/htm-preact.js";
import { Command, Empty, Gone, Table } from "./parts.js";
import { get } from "./store.js";
import { CutTable } from "./tables.js";
import { verify } from "./verify.js";
import { actions, at, away, localTimes, percent, split } from "./words.js";

const stateOf = (r) => {
  if (r.revealed) {
    return r.drawn > 0 ? `drawn: ${r.drawn} ticket${r.drawn === 1 ? "" : "s"}` : "revealed, nothing was drawn";
  }
  return r.commitment ? "committed" : "";
};

// useCheck checks the record of a Reservation again whenever its row changes.
const useCheck = (key, row) => {
  const [found, setFound] = useState(null);
  useEffect(() => {
    let gone = false;
    setFound(null);
    if (key) {
      get(`/api/record?reservation=${encodeURIComponent(key)}`).then(verify).then((of) => gone || setFound(of),
        (error) => gone || setFound({ failed: error.message }));
    }
    return () => {
      gone = true;
    };
  }, [key, row]);
  return found;
};

const Steps = ({ found }) => html`
  <p class=${`verdict ${found.verdict === "valid" ? "good" : found.verdict === "not valid" ? "bad" : ""}`}>This record is ${found.verdict}.</p>
  ${found.steps.map((step) => html`<section key=${step.title}>
    <h3 class=${step.wrong.length > 0 ? "bad" : "good"}>${step.wrong.length > 0 ? "✗" : "✓"} ${step.title}</h3>
    ${step.shows.map((line) => html`<p class="shows">${line}</p>`)}
    ${step.wrong.map((line) => html`<p class="bad">${line}</p>`)}
  </section>`)}`;

const Record = ({ reservation, now }) => {
  const found = useCheck(reservation.key, JSON.stringify(reservation));
  const { namespace, name } = split(reservation.key);
  return html`<aside class="broad">
    <h2>${reservation.key}</h2>
    <p>For ${reservation.run}, ${reservation.state}${reservation.activatedAt ? `, activated ${at(reservation.activatedAt)}`
      : `, activates ${at(reservation.earliestStart)} (${away(reservation.earliestStart, now)})`}</p>
    ${reservation.reason && html`<p>${localTimes(reservation.reason)}</p>`}
    ${found?.failed && html`<p class="bad">${found.failed}</p>`}
    ${found?.steps && html`<${Steps} found=${found}/>`}
    ${reservation.conflicts?.length > 0 && html`<${Table} caption="The conflict set" rows=${reservation.conflicts}
      keyOf=${(c) => `${c.action} ${c.run.namespace}/${c.run.name}`} columns=${[{ title: "Run", of: (c) => `${c.run.namespace}/${c.run.name}` },
  { title: "Owner", of: (c) => c.owner }, { title: "What", of: (c) => actions[c.action] },
  { title: "GPUs", right: true, of: (c) => c.gpus }, { title: "Chance", right: true, of: (c) => percent(c.probability) }]}/>`}
    <${Command} line=${`kubectl runs explain --verify ${name} -n ${namespace}`}/>
    <p class="note">The check ran in this browser, by a program that shares nothing with jobtree's own.${" "}<a href="/verify.html" download="verify.html">Save it as one file</a> to check records without this page:</p>
    <${Command} line=${`kubectl get reservation -n ${namespace} ${name} -o json > record.json`}/>
  </aside>`;
};

// Lottery is the view.
export const Lottery = ({ store, filter, chosen, choose, asTable }) => {
  const words = filter.toLowerCase();
  const rows = [...store.tables.reservations.values()].filter((r) => !words || `${r.key} ${r.run}`.toLowerCase().includes(words))
    .sort((a, b) => (a.endedAt ? 1 : 0) - (b.endedAt ? 1 : 0) || (b.endedAt ?? "").localeCompare(a.endedAt ?? "") ||
      a.key.localeCompare(b.key));
  const reservation = store.tables.reservations.get(chosen);
  return html`<div class="beside"><div class="scroll">
    ${asTable ? html`<${CutTable} reservations=${rows} stateOf=${stateOf} chosen=${chosen} choose=${choose}/>` : html`<${Table} rows=${rows}
      keyOf=${(r) => r.key} chosen=${chosen} onChoose=${choose} columns=${[
  { title: "Reservation", of: (r) => r.key }, { title: "For", of: (r) => r.run }, { title: "State", of: (r) => r.state },
  { title: "When", of: (r) => at(r.activatedAt ?? r.earliestStart) }, { title: "Lottery", of: stateOf },
  { title: "Cuts", right: true, of: (r) => r.cuts?.length ?? "" }]}/>`}
    ${rows.length === 0 && html`<${Empty}>There are no Reservations that you may read.<//>`}
  </div>${reservation && html`<${Record} key=${reservation.key} reservation=${reservation} now=${store.now}/>`}
  ${chosen && !reservation && html`<${Gone} what=${chosen}>There is no such Reservation that you may read, or it has ended, and nothing was
    drawn for it.<//>`}</div>`;
};
