// Colours: a hue for each owner, a shade for each Run of an owner. The owners can be told apart by the colour-blind too, on a light
// page and on a dark one, which a test holds; what a GPU is used for is told by shape, not by colour.

// owners are hue, saturation and lightness of each. After the last one they begin again, with a mark that the first ones have not: a slit
// across, one down, and both.
const owners = {
  light: [[205, 88, 44], [34, 42, 44], [156, 61, 33], [325, 65, 49], [264, 76, 48], [347, 72, 20], [74, 88, 24], [219, 65, 20]],
  dark: [[202, 52, 81], [24, 75, 51], [151, 87, 75], [327, 85, 48], [260, 88, 65], [14, 40, 58], [49, 82, 68], [229, 44, 63]],
};

const marks = 4;

// shades are by how much the Runs of an owner are lighter or darker.
const shades = [0, -7, 7];

const dark = matchMedia("(prefers-color-scheme: dark)");

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
  #runs = new Map(); // {owner, shade}
  #shades = new Map(); // the shades of an owner's Runs, as often as they are used

  // know gives colours to Runs that have none, and forgets those that are gone.
  know(runs) {
    for (const [key, { owner, shade }] of this.#runs) {
      if (runs.get(key)?.owner !== owner) { // gone, or made again for somebody else
        this.#runs.delete(key);
        const used = this.#shades.get(owner);
        used.splice(used.indexOf(shade), 1);
      }
    }
    for (const key of [...runs.keys()].filter((k) => !this.#runs.has(k)).sort()) {
      this.#give(key, runs.get(key).owner);
    }
  }

  #number(owner) {
    if (!this.#owners.has(owner)) {
      this.#owners.set(owner, rarest(this.#owners.values(), owners.light.length * marks));
      this.#shades.set(owner, []);
    }
    return this.#owners.get(owner);
  }

  #give(key, owner) {
    this.#number(owner);
    const used = this.#shades.get(owner);
    const shade = rarest(used, shades.length);
    used.push(shade);
    this.#runs.set(key, { owner, shade });
  }

  #colour(owner, shade) {
    const hues = owners[dark.matches ? "dark" : "light"];
    const [hue, saturation, lightness] = hues[this.#number(owner) % hues.length];
    return `hsl(${hue} ${saturation}% ${lightness + shades[shade]}%)`;
  }

  // of is the colour of a Run; of one that is not known, its owner's, and grey without one.
  of(run, owner) {
    const known = this.#runs.get(run) ?? (owner && { owner, shade: 0 });
    return known ? this.#colour(known.owner, known.shade) : "hsl(0 0% 50%)";
  }

  ofOwner(owner) {
    return this.#colour(owner, 0);
  }

  // markOf is the mark of a Run's owner: 0 for none.
  markOf(run) {
    const known = this.#runs.get(run);
    return known ? this.markOfOwner(known.owner) : 0;
  }

  markOfOwner(owner) {
    return Math.floor(this.#number(owner) / owners.light.length);
  }
}

// ink returns the colours of what is no Run's, as the style sheet has them.
export const ink = () => {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return { text: read("text"), faint: read("faint"), line: read("line"), back: read("back"), bad: read("bad"), warn: read("warn"),
    foreign: read("foreign") };
};
