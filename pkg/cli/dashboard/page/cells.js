// The GPUs of a node, cell by cell, and where each node stands in the picture.

// cellsOf returns a cell for each GPU of a node.
export const cellsOf = (node) => node.spans.flatMap((span) => Array(span.gpus).fill(span));

// longest is how many letters of a node's name are shown above it.
const longest = 12;

// shortOf is what is shown of a node's name: without the domain that machines' names end in, and of a long one the end, since names of
// one pool begin alike.
export const shortOf = (name) => {
  const host = name.length > longest && /^[^.]*[a-z-][^.]*\./.test(name) ? name.slice(0, name.indexOf(".")) : name;
  return host.length > longest ? `…${host.slice(1 - longest)}` : host;
};

// columnsOf is how many cells of a node stand side by side: up to four in one row, more in two rows, at most eight.
const columnsOf = (cells) => Math.max(1, Math.min(8, cells <= 4 ? cells : Math.ceil(cells / 2)));

const gap = 2; // between the cells of a node
const apart = 8; // between nodes
const heading = 26; // above the nodes of a domain
const naming = 14; // above a node, where its name is shown

// Layout places the nodes of each domain in rows from left to right. It knows nodes by name, so that it stays as it is while
// only their use changes.
export class Layout {
  constructor(nodes, cell, width, folded) {
    this.cell = cell;
    this.named = cell >= 12;
    this.places = []; // {name, x, y, width, height, columns, across}, from top to bottom; across is how wide the cells are
    this.domains = []; // {name, y, nodes}
    const groups = new Map();
    for (const node of nodes) {
      if (!groups.has(node.place)) {
        groups.set(node.place, []);
      }
      groups.get(node.place).push(node);
    }
    let y = 0;
    for (const [name, members] of groups) {
      this.domains.push({ name, y, nodes: members.map((node) => node.name) });
      y += heading;
      if (!folded.has(name)) {
        y = this.#rows(members, y, width);
      }
    }
    this.height = y + apart;
  }

  #rows(nodes, top, width) {
    const inset = 12;
    const size = this.cell + gap;
    let [x, y, row] = [inset, top, 0];
    for (const node of nodes) {
      const columns = columnsOf(node.gpus);
      const across = columns * size - gap;
      const wide = Math.max(across + gap, this.named ? Math.min(node.name.length, longest) * 6.5 : 0);
      const high = Math.ceil(node.gpus / columns) * size + (this.named ? naming : 0);
      if (x > inset && x + wide > width - inset) {
        [x, y, row] = [inset, y + row + apart, 0];
      }
      this.places.push({ name: node.name, x, y, width: wide, height: high, columns, across });
      x += wide + apart;
      row = Math.max(row, high);
    }
    return y + row + apart;
  }

  // first is the index of the first place that reaches below a line.
  first(y) {
    let [low, high] = [0, this.places.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      // heights differ within a row by little: the row before is looked at too
      if (this.places[middle].y + 200 < y) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // cellAt is where the n-th cell of a place is.
  cellAt(place, n) {
    const size = this.cell + gap;
    return [place.x + (n % place.columns) * size,
      place.y + (this.named ? naming : 0) + Math.floor(n / place.columns) * size];
  }

  // at is what is at a point: a node and the number of one of its cells, or a domain.
  at([x, y]) {
    for (let i = this.first(y); i < this.places.length && this.places[i].y <= y; i++) {
      const place = this.places[i];
      if (x >= place.x && x <= place.x + place.width && y >= place.y && y <= place.y + place.height) {
        const size = this.cell + gap;
        const column = Math.floor((x - place.x) / size);
        const row = Math.floor((y - place.y - (this.named ? naming : 0)) / size);
        return { name: place.name, cell: column < place.columns && row >= 0 ? row * place.columns + column : -1 };
      }
    }
    const domain = this.domains.find((d) => y >= d.y && y < d.y + heading);
    return domain ? { domain } : {};
  }

  // placeOf is where a node stands: from and to how many pixels from the top.
  placeOf(name) {
    const place = this.places.find((of) => of.name === name);
    return place && [place.y - apart, place.y + place.height + apart];
  }

  // beside is the node that is so many places further.
  beside(name, step) {
    const at = this.places.findIndex((place) => place.name === name);
    const next = Math.min(Math.max(at + step, 0), this.places.length - 1);
    return this.places[next]?.name;
  }
}

// inWords says what a cell is used for, and for which Reservation its node is intended.
export const inWords = (node, cell) => {
  const use = useInWords(node, cell);
  return node.for && use && cell.use !== "free" ? `${use}; the node is intended for ${node.for.join(", ")}` : use;
};

const useInWords = (node, cell) => {
  switch (cell?.use) {
    case "active": return `held by ${cell.run}`;
    case "spare": return `spare of ${cell.run}${cell.tenant ? `, used by ${cell.tenant} meanwhile` : ""}`;
    case "shard": return `used by ${cell.run}, which is opportunistic`;
    case "leaving": return `still used by a pod of ${cell.run} that is going`;
    case "foreign": return "used by pods that jobtree has not placed";
    case "broken": return "not allocatable: the node does not offer it";
    case "free": return `free${whyFree(node)}`;
    default: return "";
  }
};

// takesWork says whether a node may be given anything new.
export const takesWork = (node) => ["OK", "Suspect"].includes(node.state) && !node.leftOut;

// freeOn is how many GPUs of a node can be had.
export const freeOn = (node) => (takesWork(node) ? node.spans.reduce((n, span) => n + (span.use === "free" ? span.gpus : 0), 0) : 0);

// whyFree says why nobody uses what is free.
export const whyFree = (node) => {
  if (node.leftOut) {
    return `, and jobtree does not use the node: ${node.leftOut}`;
  }
  if (!takesWork(node)) {
    return `, and nothing new comes: the node is ${node.state}`;
  }
  if (node.for) {
    return `, and intended for ${node.for.join(", ")}`;
  }
  return ": no Run that waits fits here, or none waits";
};
