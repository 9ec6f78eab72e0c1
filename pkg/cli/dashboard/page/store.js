// What the server has sent: tables of rows by key, and what it says of them.
import { keyed } from "./key.js";

const byName = new Intl.Collator(undefined, { numeric: true });

export class Store {
  constructor() {
    this.tables = { nodes: new Map(), runs: new Map(), reservations: new Map() };
    this.about = { levels: [], unread: [] };
    this.hello = {};
    this.lost = false; // the server of this page does not answer
    this.version = 0; // grows with each change
    this.shape = 0; // grows when nodes come, go, or get another size or domain
    this.casts = 0; // grows when Runs come or go
    this.sorted = null; // the nodes by domain and name, for one shape
    this.then = null; // a store of the past that is shown instead
    this.listeners = new Set();
  }

  // connect keeps the store up to date.
  connect() {
    const source = new EventSource(keyed("/events"));
    source.addEventListener("hello", (event) => {
      this.hello = JSON.parse(event.data);
      this.fresh = true;
    });
    source.addEventListener("message", (event) => {
      this.lost = false;
      this.apply(JSON.parse(event.data));
      this.tell();
    });
    source.addEventListener("error", () => {
      this.lost = true;
      this.tell();
    });
  }

  // apply takes an update over. After a new connection all rows are sent again, and those before it count for nothing.
  apply(update) {
    if (this.fresh) {
      Object.values(this.tables).forEach((rows) => rows.clear());
      this.fresh = false;
    }
    for (const [name, changed] of Object.entries(update.tables)) {
      const rows = this.tables[name];
      for (const [key, row] of Object.entries(changed.set ?? {})) {
        if (name === "nodes") {
          row.gpus = row.spans.reduce((n, span) => n + span.gpus, 0);
          row.place = row.domain.map((value) => value || "?").join(" / ");
          const old = rows.get(key);
          if (old?.gpus !== row.gpus || old.place !== row.place) {
            this.reshape();
          }
        }
        if (name === "runs" && !rows.has(key)) {
          this.casts++;
        }
        rows.set(key, row);
      }
      for (const key of changed.gone ?? []) {
        rows.delete(key);
        this.casts++;
        this.reshape();
      }
    }
    const { tables, ...about } = update;
    this.about = about;
    this.version++;
  }

  reshape() {
    this.shape++;
    this.sorted = null;
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
        const update = await get(`/api/at?time=${encodeURIComponent(asked.toISOString().replace(/\.\d+/, ""))}`);
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

// get reads data of the server; what it refuses is an error in its words.
export const get = async (path) => {
  const answer = await fetch(keyed(path));
  if (!answer.ok) {
    throw new Error((await answer.text()).trim());
  }
  return answer.json();
};
