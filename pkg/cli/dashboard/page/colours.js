// Colours: a hue for each owner, a shade for each Run of an owner. The hues can be told apart by people with the common
// kinds of colour blindness; what a GPU is used for is told by shape, not by colour.

const hues = [[202, 100], [41, 95], [164, 90], [327, 45], [202, 60], [26, 100], [56, 80], [262, 45]];

const shades = [48, 36, 60, 42, 54, 66, 30];

// rarest returns the number from 0 to n-1 that is used least, the first of several.
const rarest = (used, n) => {
  const counts = Array(n).fill(0);
  for (const i of used) {
    counts[i]++;
  }
  return counts.indexOf(Math.min(...counts));
};

// Colours remembers the colours that it has given, so that who stays keeps his while others come and go.
export class Colours {
  #owners = new Map(); // the number of an owner's hue
  #runs = new Map(); // {owner, shade, colour}
  #shades = new Map(); // the shades of an owner's Runs, as often as they are used

  // know gives colours to Runs that have none, and forgets those that are gone.
  know(runs) {
    for (const [key, { owner, shade }] of this.#runs) {
      if (!runs.has(key)) {
        this.#runs.delete(key);
        const used = this.#shades.get(owner);
        used.splice(used.indexOf(shade), 1);
      }
    }
    for (const key of [...runs.keys()].filter((k) => !this.#runs.has(k)).sort()) {
      this.#give(key, runs.get(key).owner);
    }
  }

  #hue(owner) {
    if (!this.#owners.has(owner)) {
      this.#owners.set(owner, rarest(this.#owners.values(), hues.length));
      this.#shades.set(owner, []);
    }
    return hues[this.#owners.get(owner)];
  }

  #give(key, owner) {
    const [hue, saturation] = this.#hue(owner);
    const used = this.#shades.get(owner);
    const shade = rarest(used, shades.length);
    used.push(shade);
    this.#runs.set(key, { owner, shade, colour: `hsl(${hue} ${saturation}% ${shades[shade]}%)` });
  }

  // of is the colour of a Run; of one that is not known, grey.
  of(run) {
    return this.#runs.get(run)?.colour ?? "hsl(0 0% 50%)";
  }

  ofOwner(owner) {
    const [hue, saturation] = this.#hue(owner);
    return `hsl(${hue} ${saturation}% 48%)`;
  }
}

// ink returns the colours of what is no Run's, as the style sheet has them.
export const ink = () => {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return { text: read("text"), faint: read("faint"), line: read("line"), back: read("back"), bad: read("bad"), warn: read("warn"),
    foreign: read("foreign") };
};
