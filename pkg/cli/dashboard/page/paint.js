// Draws the cells of the fleet. What a GPU is used for is told by shape: full, hollow, dotted, hatched, crossed out.
import { cellsOf, freeOn, shortOf, takesWork } from "./cells.js";

const hatch = (context, x, y, size, colour) => {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let d = 3; d < 2 * size; d += 4) {
    context.moveTo(x + Math.max(0, d - size), y + Math.min(d, size));
    context.lineTo(x + Math.min(d, size), y + Math.max(0, d - size));
  }
  context.stroke();
};

const frame = (context, x, y, size, colour) => {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(x + 0.75, y + 0.75, size - 1.5, size - 1.5);
};

const dot = (context, x, y, size, colour) => {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x + size / 2, y + size / 2, size / 4, 0, 2 * Math.PI);
  context.fill();
};

const cross = (context, x, y, width, height, colour) => {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + width, y + height);
  context.moveTo(x + width, y);
  context.lineTo(x, y + height);
  context.stroke();
};

// slit cuts the mark of an owner into a cell: across, down, or both.
const slit = (context, x, y, size, mark, colour) => {
  const wide = Math.max(1, Math.round(size / 6));
  const from = Math.floor((size - wide) / 2);
  context.fillStyle = colour;
  if (mark & 1) {
    context.fillRect(x, y + from, size, wide);
  }
  if (mark & 2) {
    context.fillRect(x + from, y, wide, size);
  }
};

// paintCell draws one GPU.
export const paintCell = (context, cell, node, x, y, size, colours, ink) => {
  paintUse(context, cell, node, x, y, size, colours, ink);
  const mark = cell.run ? colours.markOf(cell.run) : 0;
  if (mark > 0) {
    slit(context, x, y, size, mark, ink.back);
  }
};

const paintUse = (context, cell, node, x, y, size, colours, ink) => {
  const colour = colours.of(cell.run);
  switch (cell.use) {
    case "active":
      context.fillStyle = colour;
      context.fillRect(x, y, size, size);
      break;
    case "spare":
      frame(context, x, y, size, colour);
      if (cell.tenant) {
        dot(context, x, y, size, colours.of(cell.tenant));
      }
      break;
    case "shard":
      frame(context, x, y, size, ink.line);
      dot(context, x, y, size, colour);
      break;
    case "leaving":
      frame(context, x, y, size, colour);
      hatch(context, x, y, size, colour);
      break;
    case "foreign":
      context.fillStyle = ink.foreign;
      context.fillRect(x, y, size, size);
      hatch(context, x, y, size, ink.back);
      break;
    case "broken":
      frame(context, x, y, size, ink.bad);
      cross(context, x + 2, y + 2, size - 4, size - 4, ink.bad);
      break;
    default:
      frame(context, x, y, size, ink.line);
      if (node.for) {
        hatch(context, x, y, size, ink.faint);
      }
  }
};

const triangle = (context, x, y, size, colour) => {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.fill();
};

// corner cuts a corner off a cell, so that it is seen on every colour, and fills it with its own.
const corner = (context, x, y, size, { warn, back }) => {
  triangle(context, x, y, size * 0.75, back);
  triangle(context, x, y, size * 0.55, warn);
};

// underline draws a line below a node that a Reservation intends to use.
const underline = (context, x, y, width, colour) => {
  context.fillStyle = colour;
  context.fillRect(x, y, width, 1.5);
};

// paintNode draws a node with its state: crossed out when it is lost, framed when it takes nothing new, and underlined when a
// Reservation intends to use it.
const paintNode = (context, layout, place, y0, view) => {
  const { nodes, colours, ink, risks, chosen } = view;
  const node = nodes.get(place.name);
  if (!node) {
    return;
  }
  if (layout.named) {
    context.fillStyle = ink.faint;
    context.fillText(shortOf(node.name), place.x, place.y - y0 + 10);
  }
  cellsOf(node).forEach((cell, n) => {
    const [x, y] = layout.cellAt(place, n);
    paintCell(context, cell, node, x, y - y0, layout.cell, colours, ink);
    if (cell.use === "active" && risks.has(cell.run)) {
      corner(context, x, y - y0, layout.cell, ink);
    }
  });
  const [left, top] = layout.cellAt(place, 0);
  const high = place.y + place.height - top;
  if (node.for) {
    underline(context, left, top + high - y0, place.across, ink.text);
  }
  if (node.state === "Lost") {
    cross(context, left, top - y0, place.across, high, ink.bad);
  } else if (!takesWork(node)) {
    context.setLineDash([3, 2]);
    context.strokeStyle = ink.warn;
    context.lineWidth = 1.5;
    context.strokeRect(left - 3, top - y0 - 3, place.across + 6, high + 4);
    context.setLineDash([]);
  }
  if (chosen === node.name) {
    context.strokeStyle = ink.text;
    context.lineWidth = 2;
    context.strokeRect(place.x - 4, place.y - y0 - 4, place.width + 6, place.height + 6);
  }
};

// paintFleet draws the part of the fleet that begins so many pixels from the top.
export const paintFleet = (context, width, height, y0, layout, view) => {
  context.font = "11px system-ui, sans-serif";
  for (let i = layout.first(y0); i < layout.places.length && layout.places[i].y < y0 + height; i++) {
    paintNode(context, layout, layout.places[i], y0, view);
  }
  context.font = "600 12px system-ui, sans-serif";
  for (const domain of layout.domains) {
    if (domain.y + 30 < y0 || domain.y > y0 + height) {
      continue;
    }
    paintDomain(context, domain, width, domain.y - y0, view);
  }
};

// fitted is as much of the end of a text as there is room for.
const fitted = (context, text, room) => {
  let shown = text;
  while (shown.length > 2 && context.measureText(shown).width > room) {
    shown = `…${shown.slice(2)}`;
  }
  return shown;
};

// paintDomain draws the heading of a domain: its name, how much is free, and a bar of how its GPUs are used.
const paintDomain = (context, domain, width, y, { nodes, colours, ink, folded }) => {
  const runs = new Map();
  let [total, free] = [0, 0];
  for (const name of domain.nodes) {
    const node = nodes.get(name);
    free += node ? freeOn(node) : 0;
    for (const span of node?.spans ?? []) {
      total += span.gpus;
      if (span.use !== "free") {
        const key = span.run ?? span.use;
        runs.set(key, (runs.get(key) ?? 0) + span.gpus);
      }
    }
  }
  context.fillStyle = ink.text;
  const told = `${free} of ${total} GPUs free`;
  const right = width - 12 - context.measureText(told).width;
  context.fillText(told, right, y + 17);
  const sign = folded.has(domain.name) ? "▸ " : "▾ ";
  const title = sign + fitted(context, domain.name, right - 24 - context.measureText(sign).width);
  context.fillText(title, 4, y + 17);
  let x = Math.max(context.measureText(title).width + 20, width / 3);
  const room = right - 12 - x;
  if (room < 40 || total === 0) {
    return;
  }
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  context.strokeRect(x, y + 8.5, room, 10);
  for (const [key, n] of [...runs].sort()) {
    context.fillStyle = key.includes("/") ? colours.of(key) : ink.foreign;
    context.fillRect(x, y + 9, (room * n) / total, 9);
    x += (room * n) / total;
  }
};
