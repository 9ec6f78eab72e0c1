// What the server has sent: tables of rows by key, and what it says of them.
import { keyed } from "./key.js";

const byName = new Intl.Collator(undefined, { numeric: true });

// skewSeen is from how many milliseconds on two clocks are told apart: less is the way from one to the other.
const skewSeen = 2000;

export class Store {
  constructor() {
    this.tables = { nodes: new Map(), runs: new Map(), reservations: new Map() };
    this.about = { levels: [], unread: [] };
    this.hello = {};
    this.lost = false; // the server of this page does not answer
    this.refusal = ""; // what it answers instead of what is asked for
    this.patience = 35e3; // how long it may say nothing; it says something every ten seconds
    this.skew = 0; // by how much its clock is before that of the browser
    this.version = 0; // grows with each change
    this.shape = 0; // grows when nodes come, go, or get another size or domain
    this.casts = 0; // grows when Runs come or go, or get another owner
    this.sorted = null; // the nodes by domain and name, for one shape
    this.then = null; // a store of the past that is shown instead
    this.listeners = new Set();
  }

  // connect keeps the store up to date while the page can be seen. Browsers have six connections to a server, for all of its pages.
  connect() {
    const look = () => (document.hidden ? this.leave() : this.join());
    document.addEventListener("visibilitychange", look);
    setInterval(() => { // a connection may have ended without a word
      if (this.source && Date.now() - this.heard > this.patience) {
        this.leave();
        this.miss();
        look();
      }
    }, 1000);
    look();
  }

  leave() {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  join() {
    this.leave();
    const source = new EventSource(keyed("/events"));
    this.source = source;
    this.heard = Date.now();
    source.addEventListener("hello", (event) => {
      this.heard = Date.now();
      this.hello = JSON.parse(event.data);
      this.fresh = true;
    });
    source.addEventListener("message", (event) => {
      this.heard = Date.now();
      this.lost = false;
      this.refusal = "";
      this.apply(JSON.parse(event.data));
      this.tell();
    });
    source.addEventListener("error", () => {
      this.heard = Date.now();
      this.miss();
      if (source.readyState === EventSource.CLOSED) { // the browser tries again in all other cases
        this.again = setTimeout(() => this.join(), 5000);
        this.why();
      }
    });
  }

  miss() {
    this.lost = true;
    this.tell();
  }

  // why asks for what the server says instead of sending events.
  async why() {
    const enough = new AbortController();
    try {
      const answer = await fetch(keyed("/events"), { signal: enough.signal });
      this.refusal = answer.ok ? "" : (await answer.text()).trim();
      this.tell();
    } catch {
      this.refusal = ""; // it does not answer
    } finally {
      enough.abort();
    }
  }

  // apply takes an update over. After a new connection all rows are sent again, and those that are not sent are gone.
  apply(update) {
    for (const [name, rows] of Object.entries(this.tables)) {
      const { set = {}, gone = [] } = update.tables[name] ?? {};
      for (const [key, row] of Object.entries(set)) {
        this.#set(name, rows, key, row);
      }
      for (const key of this.fresh ? [...rows.keys()].filter((k) => !Object.hasOwn(set, k)) : gone) {
        rows.delete(key);
        this.#changed(name);
      }
    }
    this.fresh = false;
    const { tables, ...about } = update;
    this.about = about;
    const skew = Date.parse(about.at) - Date.now();
    this.skew = Math.abs(skew) < skewSeen ? 0 : skew;
    this.version++;
  }

  #set(name, rows, key, row) {
    const old = rows.get(key);
    if (name === "nodes") {
      row.gpus = row.spans.reduce((n, span) => n + span.gpus, 0);
      row.place = row.domain.map((value) => value || "?").join(" / ");
    }
    if (old?.gpus !== row.gpus || old?.place !== row.place || old?.owner !== row.owner) {
      this.#changed(name);
    }
    rows.set(key, row);
  }

  // changed takes note that there are other rows, or that they are of others or of other sizes.
  #changed(name) {
    if (name === "runs") {
      this.casts++;
    } else if (name === "nodes") {
      this.shape++;
      this.sorted = null;
    }
  }

  // now is the time by the clock of the machine that serves the page, which may be another one than the browser's.
  get now() {
    return Date.now() + this.skew;
  }

  // names are the nodes' names, by domain and name.
  get names() {
    this.sorted ??= [...this.tables.nodes.values()].sort((a, b) => byName.compare(a.place, b.place) ||
      byName.compare(a.name, b.name)).map((node) => node.name);
    return this.sorted;
  }

  // goTo shows an instant of the past, or the present again without one. One instant is asked for at a time: of those that
  // come up meanwhile the last one counts.
  async goTo(instant) {
    this.wanted = instant;
    if (!instant) {
      this.then = null;
      this.tell();
      return;
    }
    if (this.going) {
      return;
    }
    this.going = true;
    try {
      for (let asked = null; this.wanted && this.wanted !== asked;) {
        asked = this.wanted;
        const update = await get(`/api/at?time=${toSecond(asked)}`);
        if (this.wanted) {
          const then = new Store();
          then.apply(update);
          this.then = then;
          this.tell();
        }
      }
    } catch {
      // what is shown stays, and the banner says what does not answer
    } finally {
      this.going = false;
    }
  }

  // shown is the store of the instant that is shown.
  get shown() {
    return this.then ?? this;
  }

  tell() {
    this.listeners.forEach((listener) => listener());
  }
}

// toSecond is an instant as the server reads it.
export const toSecond = (instant) => encodeURIComponent(new Date(instant).toISOString().replace(/\.\d+/, ""));

// get reads data of the server; what it refuses is an error in its words.
export const get = async (path) => {
  const answer = await fetch(keyed(path));
  if (!answer.ok) {
    throw new Error((await answer.text()).trim());
  }
  return answer.json();
};
