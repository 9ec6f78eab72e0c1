// The page: five views of one cluster, which the server keeps up to date.
import { html, render, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { Colours } from "./colours.js";
import { Fleet } from "./fleet.js";
import { Lottery } from "./lottery.js";
import { Money } from "./money.js";
import { useKeys } from "./parts.js";
import { Store } from "./store.js";
import { Time } from "./time.js";
import { Waiting } from "./waiting.js";
import { at, span } from "./words.js";

const views = [["fleet", "Fleet", Fleet], ["time", "Time", Time], ["money", "Money", Money], ["waiting", "Waiting and at risk", Waiting],
  ["lottery", "Lottery", Lottery]];

// decoded is a part of an address; one that was cut off is taken as it is.
const decoded = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

// The address says what is shown, so that it can be kept: #view/chosen?filter=…&table
const readAddress = () => {
  const [path, query] = location.hash.slice(1).split("?");
  const [view, ...chosen] = path.split("/");
  const parameters = new URLSearchParams(query ?? "");
  return { view: views.some(([name]) => name === view) ? view : "fleet", chosen: chosen.map(decoded).join("/"),
    filter: parameters.get("filter") ?? "", table: parameters.has("table"), mine: parameters.has("mine") };
};

const writeAddress = ({ view, chosen, filter, table, mine }) => {
  const parameters = new URLSearchParams();
  if (filter) {
    parameters.set("filter", filter);
  }
  if (table) {
    parameters.set("table", "");
  }
  if (mine) {
    parameters.set("mine", "");
  }
  const query = parameters.toString();
  const path = chosen ? `${view}/${chosen.split("/").map(encodeURIComponent).join("/")}` : view;
  return `#${path}${query ? `?${query}` : ""}`;
};

const useAddress = () => {
  const [address, setAddress] = useState(readAddress());
  useEffect(() => {
    const read = () => setAddress(readAddress());
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  const change = (part, keep) => {
    const next = writeAddress({ ...readAddress(), ...part });
    if (keep) {
      location.hash = next;
      return;
    }
    history.replaceState(null, "", next);
    setAddress(readAddress());
  };
  return [address, change];
};

// useStore draws again after each change, and once a second for what counts down.
const useStore = (store) => {
  const [, draw] = useState(0);
  useEffect(() => {
    const again = () => draw((n) => n + 1);
    store.listeners.add(again);
    const clock = setInterval(again, 1000);
    return () => {
      store.listeners.delete(again);
      clearInterval(clock);
    };
  }, []);
};

// Banner says what is not as it should be.
const Banner = ({ store }) => {
  const { about } = store;
  return html`<div role="status" aria-live="polite">
    ${store.lost && html`<p class="banner bad">${store.refusal || `The dashboard has ended, or cannot be reached. Start "kubectl runs ` +
      `dashboard" again if it has.`} What you see is ${about.at ? `of ${at(about.at)}` : "nothing"}.</p>`}
    ${!store.lost && about.since && html`<p class="banner bad">${about.loggedOut
      ? "The API server does not accept your login any more: log in again. What you see is that of"
      : "The API server has not answered since"} ${at(about.since)}<span aria-live="off"> (${span(store.now - new Date(about.since))})</span>${about.loggedOut
      ? "." : ": what you see may be as old."}${about.why && ` (${about.why})`}</p>`}
    ${about.unread?.length > 0 && html`<details class="banner"><summary>Some things may not be read with your rights.</summary>
      <ul>${about.unread.map((line) => html`<li>${line}</li>`)}</ul></details>`}
    ${store.then && html`<p class="banner">The fleet as GPU leases tell of it at ${at(store.then.about.at)}. Nodes are shown as they are now.
      <button onClick=${() => store.goTo(null)}>back to now</button></p>`}
  </div>`;
};

// Past is a bar by which one goes back in time.
const Past = ({ store }) => {
  const first = Date.parse(store.about.ledgerFrom ?? "");
  const [back, setBack] = useState(0); // in thousandths of what the ledger knows
  if (!first) {
    return null;
  }
  const move = (event) => {
    const part = Number(event.target.value);
    setBack(part);
    store.goTo(part >= 1000 ? null : new Date(first + ((store.now - first) * part) / 1000));
  };
  return html`<label class="past">Past <input type="range" min="0" max="1000" value=${store.then ? back : 1000} onInput=${move}
    aria-valuetext=${store.then ? at(store.then.about.at) : "now"}/></label>`;
};

const help = [["1 to 5", "go to a view"], ["t", "table instead of the picture, and back"], ["/", "filter"], ["arrow keys", "from node to node; through time"],
  ["f", "fold the domain of the chosen node, and unfold it"], ["+ and -", "zoom time"], ["Esc", "close"], ["?", "this list"]];

// Help has the keyboard while it is open, and gives it back.
const Help = ({ close }) => {
  const button = useRef();
  useEffect(() => {
    const before = document.activeElement;
    button.current.focus();
    return () => before.focus();
  }, []);
  return html`<div class="help" role="dialog" aria-label="Keys"><dl>${help.map(([key, does]) =>
    html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl><button ref=${button} onClick=${close}>close</button></div>`;
};

const App = ({ store }) => {
  const [address, change] = useAddress();
  const [helps, setHelps] = useState(false);
  const filter = useRef();
  useStore(store);
  useMemo(() => colours.know(store.shown.tables.runs), [store.shown.casts, store.then]);
  const show = (view) => change({ view, chosen: "" }, true);
  useKeys({ ...Object.fromEntries(views.map(([view], i) => [String(i + 1), () => show(view)])),
    t: () => change({ table: !address.table }), "/": () => setTimeout(() => filter.current.focus()), "?": () => setHelps(!helps),
    Escape: (event) => {
      if (helps) {
        setHelps(false);
        return;
      }
      change({ chosen: "" });
      event.target.blur();
    } });
  const [, title, View] = views.find(([name]) => name === address.view);
  useEffect(() => {
    document.title = `${title} · jobtree`;
  }, [title]);
  return html`
    <header>
      <h1>jobtree</h1>
      <nav aria-label="Views">${views.map(([name, words], i) => html`<a key=${name} href=${`#${name}`}
        aria-current=${name === address.view ? "page" : undefined} title=${`Key ${i + 1}`}>${words}</a>`)}</nav>
      <input ref=${filter} type="search" placeholder="Filter: node, Run, owner" aria-label="Filter" value=${address.filter}
        onInput=${(event) => change({ filter: event.target.value })}/>
      ${address.view === "fleet" && html`<${Past} store=${store}/>`}
      <button aria-pressed=${address.table} onClick=${() => change({ table: !address.table })}>table</button>
      <button onClick=${() => setHelps(!helps)} aria-label="Keys">?</button>
    </header>
    <${Banner} store=${store}/>
    <main class=${address.view}>${store.version === 0 ? html`<p class="empty">Reading the cluster.</p>` : html`<${View} store=${store} colours=${colours}
      filter=${address.filter} chosen=${address.chosen} choose=${(chosen) => change({ chosen })} asTable=${address.table}
      go=${(view, chosen) => change({ view, chosen }, true)} mine=${address.mine} setMine=${(mine) => change({ mine })}/>`}</main>
    ${helps && html`<${Help} close=${() => setHelps(false)}/>`}`;
};

const colours = new Colours();
const store = new Store();
store.connect();
render(html`<${App} store=${store}/>`, document.getElementById("app"));

// For programs that test the page.
globalThis.store = store;
