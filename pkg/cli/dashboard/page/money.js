// The view of money: what each envelope pays for.
import { html } from "./vendor/htm-preact.js";
import { useAnswer } from "./answer.js";
import { Command, Empty, Swatch, Table } from "./parts.js";
import { CapTable, EnvelopeTable } from "./tables.js";
import { at, away, hours, localTimes } from "./words.js";

const parts = [["ownedGPUs", "own", "own"], ["familyGPUs", "family", "lent to family"], ["lentGPUs", "lent", "lent to sponsors' borrowers"],
  ["spareGPUs", "spare", "spare"], ["overdraftGPUs", "overdraft", "overdraft"]];

const Bar = ({ envelope }) => {
  const most = Math.max(envelope.concurrency, parts.reduce((n, [field]) => n + envelope[field], 0), 1);
  return html`<div class="bar" role="img" aria-label=${`${envelope.freeGPUs} of ${envelope.concurrency} GPUs free`}>
    ${parts.map(([field, name, words]) => envelope[field] > 0 && html`<span key=${field} class=${name}
      title=${`${envelope[field]} ${words}`} style=${{ width: `${(100 * envelope[field]) / most}%` }}></span>`)}</div>`;
};

// inOrder lists owners below their first parent, with their depth.
const inOrder = (parents) => {
  const children = new Map();
  const roots = [];
  for (const owner of Object.keys(parents).sort()) {
    const of = parents[owner]?.[0];
    if (of) {
      children.set(of, [...(children.get(of) ?? []), owner]);
    } else {
      roots.push(owner);
    }
  }
  const out = [];
  const seen = new Set();
  const add = (owner, depth) => {
    if (!seen.has(owner)) {
      seen.add(owner);
      out.push({ owner, depth });
      (children.get(owner) ?? []).forEach((child) => add(child, depth + 1));
    }
  };
  roots.forEach((root) => add(root, 0));
  Object.keys(parents).sort().forEach((owner) => add(owner, 0)); // a circle has no root
  return out;
};

const Envelope = ({ e, now }) => html`<tr>
  <td>${e.budget}/${e.envelope}</td><td>${e.flavor}</td>
  <td class="wide"><${Bar} envelope=${e}/></td>
  <td class="right">${parts.reduce((n, [field]) => n + e[field], 0)} / ${e.concurrency}</td>
  <td class="right">${hours(e.spentGPUHours)}${e.maxGPUHours === undefined ? "" : ` / ${hours(e.maxGPUHours)}`}</td>
  <td>${e.runsOut ? html`runs out ${at(e.runsOut)} (${away(e.runsOut, now)})` : ""}
    ${e.end ? html` ends ${at(e.end)}` : ""}${e.start && Date.parse(e.start) > now ? html` begins ${at(e.start)}` : ""}</td>
</tr>`;

// Family shows owners below their parents, each with a bar for each of its envelopes.
const Family = ({ money, owners, colours, now }) => html`
    <div class="legend">${parts.map(([, name, text]) => html`<span key=${name}><i class=${`key ${name}`}></i> ${text}</span>`)}
      <span><i class="key free"></i> free</span></div>
    <table class="money">
      <thead><tr><th scope="col">Envelope</th><th scope="col">Type</th><th scope="col">GPUs</th><th scope="col" class="right">Used / all</th>
        <th scope="col" class="right">GPU-hours spent</th><th scope="col">Until</th></tr></thead>
      ${owners.map(({ owner, depth }) => html`<tbody key=${owner}>
        <tr><th scope="rowgroup" colspan="6" style=${{ paddingLeft: `${8 + 20 * depth}px` }}><${Swatch} colour=${colours.ofOwner(owner)} mark=${colours.markOfOwner(owner)}/> ${owner}</th></tr>
        ${money.envelopes.filter((e) => e.owner === owner).map((e) => html`<${Envelope} key=${`${e.budget}/${e.envelope}`} e=${e} now=${now}/>`)}
        ${money.conditions.filter((c) => c.owner === owner).map((c) => html`<tr><td colspan="6" class="bad">${localTimes(c.message)}</td></tr>`)}
      </tbody>`)}
    </table>`;

// Money is the view.
export const Money = ({ store, colours, filter, asTable }) => {
  const { data: money, failed } = useAnswer("/api/money", store.version);
  if (!money) {
    return failed ? html`<p class="bad">${failed}</p>` : html`<${Empty}>Reading the Budgets.<//>`;
  }
  const words = filter.toLowerCase();
  const owners = inOrder(money.parents).filter(({ owner }) => !words || owner.toLowerCase().includes(words));
  return html`<div class="scroll">
    ${failed && html`<p class="bad">${failed}</p>`}
    ${asTable ? html`<${EnvelopeTable} money=${money} owners=${owners}/>
      ${money.aggregateCaps.length > 0 && html`<${CapTable} money=${money} owners=${owners}/>`}` : html`<${Family} money=${money} owners=${owners} colours=${colours}
      now=${store.now}/>`}
    ${owners.length === 0 && html`<${Empty}>No Budgets can be seen.<//>`}
    ${money.flows.length > 0 && html`<${Table} caption="Who pays for whom" rows=${money.flows}
      keyOf=${(f) => `${f.payer} ${f.owner} ${f.relation}`} columns=${[{ title: "Payer", of: (f) => f.payer },
  { title: "pays for", of: (f) => f.owner }, { title: "as", of: (f) => f.relation }, { title: "GPUs", right: true, of: (f) => f.gpus }]}/>`}
    <${Command} line="kubectl runs budgets usage --tree"/>
  </div>`;
};
