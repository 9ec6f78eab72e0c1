// Parts that several views are made of.
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";

// mostRows is how many rows of a table are drawn.
const mostRows = 500;

// Table shows rows; columns are {title, of(row), right?, long?}. A row is chosen by its key, unless several rows are about one choice. A
// plain table is as wide as it needs to be: only what is long is broken into lines.
export const Table = ({ caption, columns, rows, keyOf, chosen, choiceOf = keyOf, onChoose, plain }) => html`
  <table class=${plain ? "plain" : ""}>
    ${caption && html`<caption>${caption}</caption>`}
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.right ? "right" : ""}>${c.title}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, mostRows).map((row) => html`
      <tr key=${keyOf(row)} class=${onChoose && chosen === choiceOf(row) ? "chosen" : ""}>
        ${columns.map((c, i) => html`<td class=${c.right ? "right" : c.long ? "long" : ""}>${i === 0 && onChoose
    ? html`<button class="link" aria-current=${chosen === choiceOf(row) ? "true" : undefined} onClick=${() => onChoose(choiceOf(row))}>${c.of(row)}</button>` : c.of(row)}</td>`)}
      </tr>`)}</tbody>
    ${rows.length > mostRows && html`<tfoot><tr><td colspan=${columns.length}>
      ${rows.length - mostRows} more rows: use the filter.</td></tr></tfoot>`}
  </table>`;

// Command shows a command that can be copied.
export const Command = ({ line }) => {
  const [copied, setCopied] = useState(false);
  const text = useRef();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch { // the browser does not let pages copy: people can
      getSelection().selectAllChildren(text.current);
    }
  };
  return html`<div class="command"><code ref=${text}>${line}</code>
    <button onClick=${copy} aria-label=${`Copy ${line}`}>${copied ? "copied" : "copy"}</button></div>`;
};

// Swatch is a square in a colour, with an owner's mark.
export const Swatch = ({ colour, mark }) => html`<span class=${`swatch mark${mark}`} style=${{ backgroundColor: colour }}></span>`;

// Tip says something beside the pointer, where there is room for it.
export const Tip = ({ x, y, words }) => html`<div class="tip" role="tooltip" style=${{
  left: x < innerWidth / 2 ? `${x + 12}px` : "auto", right: x < innerWidth / 2 ? "auto" : `${innerWidth - x + 12}px`,
  top: y < innerHeight / 2 ? `${y + 12}px` : "auto", bottom: y < innerHeight / 2 ? "auto" : `${innerHeight - y + 12}px`,
}}>${words}</div>`;

// Gone is said of what the address names and is not there.
export const Gone = ({ what, children }) => html`<aside class="broad"><h2>${what}</h2><p>${children}</p></aside>`;

// useKeys has keys do something: of what was drawn last, unless somebody types, or presses the keys of the browser. Arrow keys stay what
// they are where they scroll.
export const useKeys = (actions) => {
  const last = useRef();
  last.current = actions;
  useEffect(() => {
    const pressed = (event) => {
      const keeps = event.key.startsWith("Arrow") ? "input, textarea, select, aside, .scroll, [role=dialog]"
        : "input:not([type=range]):not([type=checkbox]), textarea, select";
      const does = last.current[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey || !does || (event.key !== "Escape" && event.target.closest?.(keeps))) {
        return;
      }
      event.preventDefault();
      does(event);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
};

// Empty is said where there is nothing to show.
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

// Canvas is a picture that is drawn by draw(context, width, height, from) for the part that is scrolled to, from pixels from
// its top, and drawn again after a change of its size, of the colours, or of what it depends on. What is to be seen, from and to how many
// pixels from the top, is scrolled to.
export const Canvas = ({ height, draw, label, depends, onPoint, onChoose, reveal }) => {
  const box = useRef();
  const canvas = useRef();
  const last = useRef();
  last.current = draw;
  useEffect(() => {
    let due = 0;
    const paint = () => {
      due = 0;
      const { clientWidth: width, clientHeight: shown } = box.current;
      const scale = devicePixelRatio;
      const of = canvas.current;
      if (of.width !== Math.round(width * scale) || of.height !== Math.round(shown * scale)) {
        of.width = Math.round(width * scale);
        of.height = Math.round(shown * scale);
        of.style.width = `${width}px`;
        of.style.height = `${shown}px`;
      }
      const context = of.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, shown);
      const begun = performance.now();
      last.current(context, width, shown, box.current.scrollTop);
      globalThis.lastPaint = performance.now() - begun;
    };
    const soon = () => {
      due ||= requestAnimationFrame(paint);
    };
    box.current.repaint = soon;
    const sizes = new ResizeObserver(soon);
    sizes.observe(box.current);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", soon);
    return () => {
      cancelAnimationFrame(due);
      sizes.disconnect();
      dark.removeEventListener("change", soon);
    };
  }, []);
  useEffect(() => box.current.repaint(), depends);
  useEffect(() => {
    const [from, to] = reveal ?? [Infinity, 0];
    const { scrollTop, clientHeight } = box.current;
    if (from < scrollTop || to > scrollTop + clientHeight) {
      box.current.scrollTop = Math.max(0, from < scrollTop ? from : to - clientHeight);
    }
  }, reveal ?? [null, null]);
  const point = (event) => {
    const area = canvas.current.getBoundingClientRect();
    return [event.clientX - area.left, event.clientY - area.top + box.current.scrollTop];
  };
  return html`<div class="picture" ref=${box} tabIndex="0" role="region" aria-label="Picture" onScroll=${() => box.current?.repaint()}>
    <canvas ref=${canvas} role="img" aria-label=${label}
      onMouseMove=${(event) => onPoint?.(point(event), event)} onMouseLeave=${() => onPoint?.(null)}
      onClick=${(event) => onChoose?.(point(event))}></canvas>
    <div style=${{ height: `${height}px` }} class="extent"></div>
  </div>`;
};
