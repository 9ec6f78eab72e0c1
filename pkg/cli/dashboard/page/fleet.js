// The view of the fleet: every GPU, level by level.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { cellsOf, freeOn, inWords, Layout } from "./cells.js";
import { ink } from "./colours.js";
import { paintCell, paintFleet } from "./paint.js";
import { Canvas, Command, Empty, Gone, Swatch, Table, Tip, useKeys } from "./parts.js";
import { at, gpus, localTimes } from "./words.js";

const sizes = [6, 9, 12, 16];

// sizeFor is the largest size of a cell with which the fleet is not much higher than a screen.
const sizeFor = (nodes) => sizes[nodes > 2000 ? 0 : nodes > 600 ? 1 : nodes > 150 ? 2 : 3];

const useWidth = () => {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const measure = () => setWidth(document.querySelector(".picture")?.clientWidth ?? 0);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  });
  return width;
};

// matching are the nodes that a filter names, by themselves or by who is on them.
const matching = (store, filter) => {
  const { nodes, runs } = store.tables;
  const words = filter.toLowerCase();
  const has = (of) => of?.toLowerCase().includes(words);
  const all = store.names.map((name) => nodes.get(name));
  return words === "" ? all : all.filter((node) => has(node.name) || has(node.place) || node.state.toLowerCase() === words ||
    node.spans.some((span) => has(span.run) || has(span.tenant) || has(runs.get(span.run)?.owner)));
};

const Legend = ({ colours, runs }) => {
  const owners = new Set([...runs.values()].filter((run) => run.allocated > 0).map((run) => run.owner));
  return html`<div class="legend">
    ${[...owners].sort().map((owner) => html`<span key=${owner}><${Swatch} colour=${colours.ofOwner(owner)} mark=${colours.markOfOwner(owner)}/> ${owner}</span>`)}
    ${[["active", "held"], ["spare", "spare"], ["shard", "opportunistic"], ["leaving", "leaving"], ["foreign", "not jobtree's"],
    ["free", "free"], ["broken", "not allocatable"]].map(([use, words]) => html`<span key=${use}><${Sample} use=${use}/> ${words}</span>`)}
    <span><i class="at-risk"></i> may be cut</span><span><i class="shut"></i> accepts no new pods</span>
    <span><i class="lost">✕</i> lost</span><span><i class="intended"></i> intended for a Reservation</span>
  </div>`;
};

// Sample draws one cell for the legend.
const Sample = ({ use }) => html`<canvas class="sample" width="28" height="28" ref=${(canvas) => {
  if (canvas) {
    const context = canvas.getContext("2d");
    context.setTransform(2, 0, 0, 2, 0, 0);
    context.clearRect(0, 0, 14, 14);
    paintCell(context, { use, run: "" }, {}, 1, 1, 12, { of: () => ink().text }, ink());
  }
}}></canvas>`;

const NodeDetails = ({ node, go }) => html`<aside>
  <h2>${node.name}</h2>
  <p>${node.domain.join(" / ")}, ${node.gpuType || "no GPU type"}</p>
  <p>${node.state}${node.why && `: ${localTimes(node.why)}`}${node.since && ` (since ${at(node.since)})`}</p>
  ${node.leftOut && html`<p>jobtree does not use it: ${node.leftOut}.</p>`}
  ${node.for && html`<p>Intended for ${node.for.map((key) => html`<button class="link" onClick=${() => go("lottery", key)}>${key}</button> `)}</p>`}
  <ul>${node.spans.map((span) => html`<li>${gpus(span.gpus)} ${inWords(node, span)}
    ${span.run && html` <button class="link" onClick=${() => go("waiting", span.run)}>show</button>`}</li>`)}</ul>
  <${Command} line=${`kubectl describe node ${node.name}`}/>
</aside>`;

// Fleet is the view.
export const Fleet = ({ store, colours, filter, chosen, choose, go, asTable }) => {
  const { nodes, runs } = store.shown.tables;
  const [size, setSize] = useState(null);
  const [folded, setFolded] = useState(new Set());
  const [tip, setTip] = useState(null);
  const width = useWidth();
  const shown = useMemo(() => matching(store.shown, filter), [store.shown.version, store.then, filter]);
  const cell = size ?? sizeFor(nodes.size);
  const layout = useMemo(() => new Layout(shown, cell, width, folded),
    [filter ? shown : store.shown.shape, store.then, filter, cell, width, folded]);
  const risks = new Set([...runs.values()].filter((run) => run.risks?.length).map((run) => run.key));
  const fold = (name) => setFolded((old) => {
    const next = new Set(old);
    return next.delete(name) ? next : next.add(name);
  });
  useNodeKeys(asTable ? null : layout, chosen, choose, () => nodes.has(chosen) && fold(nodes.get(chosen).place));
  if (nodes.size === 0) {
    return html`<${Empty}>No nodes with GPUs can be seen.<//>`;
  }
  const free = shown.reduce((n, node) => n + freeOn(node), 0);
  const total = shown.reduce((n, node) => n + node.gpus, 0);
  return html`
    <div class="tools">
      <span>${shown.length} nodes, ${gpus(total)}, ${free} free</span>
      <span>Size ${sizes.map((s) => html`<button key=${s} aria-pressed=${s === cell} onClick=${() => setSize(s)}>${s}</button>`)}</span>
    </div>
    <${Legend} colours=${colours} runs=${runs}/>
    <div class="beside">
      ${asTable ? html`<${NodeTable} nodes=${shown} chosen=${chosen} choose=${choose}/>` : html`<${Canvas}
        label=${`The fleet: ${shown.length} nodes, ${free} of ${total} GPUs are free. Press t for a table.`}
        height=${layout.height} reveal=${layout.placeOf(chosen)} depends=${[layout, nodes, store.shown.version, colours, chosen]}
        draw=${(context, w, h, y) => paintFleet(context, w, h, y, layout,
    { nodes, colours, ink: ink(), risks, chosen, folded })}
        onPoint=${(point, event) => setTip(point && tipAt(layout, nodes, point, event))}
        onChoose=${(point) => {
    const found = layout.at(point);
    if (found.domain) {
      fold(found.domain.name);
    } else {
      choose(found.name ?? "");
    }
  }}/>`}
      ${nodes.has(chosen) && html`<${NodeDetails} node=${nodes.get(chosen)} go=${go}/>`}
      ${chosen && !nodes.has(chosen) && html`<${Gone} what=${chosen}>There is no such node with GPUs that you may read.<//>`}
    </div>
    ${tip && html`<${Tip} ...${tip}/>`}`;
};

const tipAt = (layout, nodes, point, event) => {
  const { name, cell } = layout.at(point);
  const node = nodes.get(name);
  const used = node && cellsOf(node)[cell];
  return node && { x: event.clientX, y: event.clientY, words: `${name}${used ? `: ${inWords(node, used)}` : ""}` };
};

// useNodeKeys lets the arrow keys go from node to node, as fast as they are pressed, among those that are drawn at the moment.
const useNodeKeys = (layout, chosen, choose, fold) => {
  const now = useRef();
  now.current = { layout, chosen, choose };
  const go = (step) => () => {
    const drawn = now.current;
    drawn.chosen = drawn.layout.beside(drawn.chosen, drawn.chosen ? step : 1) ?? "";
    drawn.choose(drawn.chosen);
  };
  useKeys(layout ? { ArrowLeft: go(-1), ArrowRight: go(1), ArrowUp: go(-8), ArrowDown: go(8), f: fold } : {});
};

const NodeTable = ({ nodes, chosen, choose }) => html`<div class="scroll"><${Table} rows=${nodes} keyOf=${(n) => n.name}
  chosen=${chosen} onChoose=${choose} columns=${[
  { title: "Node", of: (n) => n.name },
  { title: "Domain", of: (n) => n.domain.join(" / ") },
  { title: "Type", of: (n) => n.gpuType },
  { title: "State", of: (n) => n.state },
  { title: "Free", right: true, of: freeOn },
  { title: "GPUs", right: true, of: (n) => n.gpus },
  { title: "Used by", of: (n) => n.spans.filter((s) => s.run || s.use === "foreign").map((s) =>
    `${s.run ?? "others"} ${s.gpus}${s.use === "active" ? "" : ` ${s.use}`}`).join(", ") },
  { title: "Intended for", of: (n) => n.for?.join(", ") ?? "" },
]}/></div>`;
