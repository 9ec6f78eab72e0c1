// Checks the record of a lottery. Written after docs/lottery.md, and sharing nothing with jobtree's own check.

const text = new TextEncoder();

const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");

const bytesOf = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));

const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

const joined = (...parts) => {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
};

const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

const nameOf = (run) => `${run?.namespace ?? ""}/${run?.name ?? ""}`;

const sameRun = (a, b) => nameOf(a) === nameOf(b);

// Owners are told apart without regard to case, letter by letter.
const ownerKey = (owner) => Array.from(String(owner ?? ""), (letter) =>
  String.fromCodePoint(letter.toLowerCase().codePointAt(0))).join("");

// byBytes orders names as they are ordered in UTF-8.
const byBytes = (a, b) => {
  const x = text.encode(a);
  const y = text.encode(b);
  for (let i = 0; i < x.length && i < y.length; i++) {
    if (x[i] !== y[i]) {
      return x[i] - y[i];
    }
  }
  return x.length - y.length;
};

// lineOf is an entry of the conflict set as it is hashed.
const lineOf = (entry) => {
  const parts = [entry.action, entry.owner, nameOf(entry.run), entry.gpus ?? 0, entry.probability];
  if (entry.priority !== undefined && entry.priority !== null) {
    parts.push(entry.priority);
  }
  return parts.map((part) => part ?? "").join(" ") + "\n";
};

// Numbers draws what HMAC-SHA-256 of a counter gives under the seed.
class Numbers {
  constructor(key) {
    this.key = key;
    this.counter = 0n;
  }

  static async from(seed) {
    return new Numbers(await crypto.subtle.importKey("raw", seed, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]));
  }

  // below draws a number from 0 to n-1. Numbers of the last, incomplete stretch of n below 2^64 are passed over.
  async below(n) {
    if (n === 1) {
      return 0;
    }
    const modulus = BigInt(n);
    const limit = (1n << 64n) - ((1n << 64n) % modulus);
    for (;;) {
      const mac = await crypto.subtle.sign("HMAC", this.key, text.encode(String(this.counter++)));
      const x = new DataView(mac).getBigUint64(0);
      if (x < limit) {
        return Number(x % modulus);
      }
    }
  }
}

// Urn holds the tickets that have not been drawn, by owner.
class Urn {
  constructor(entries) {
    const owners = new Map();
    for (const entry of entries) {
      if (entry.action === "Lottery") {
        const key = ownerKey(entry.owner);
        owners.set(key, [...(owners.get(key) ?? []), entry]);
      }
    }
    this.owners = [...owners.keys()].sort(byBytes).map((key) => owners.get(key).sort((a, b) =>
      byBytes(a.run.namespace, b.run.namespace) || byBytes(a.run.name, b.run.name)));
  }

  async draw(numbers) {
    if (this.owners.length === 0) {
      return null;
    }
    const owners = this.owners.length;
    const at = await numbers.below(owners);
    const tickets = this.owners[at].length;
    const [ticket] = this.owners[at].splice(await numbers.below(tickets), 1);
    if (this.owners[at].length === 0) {
      this.owners.splice(at, 1);
    }
    return { ticket, owners, tickets };
  }
}

// Check collects the steps of one check, each with what was found to be wrong in it.
class Check {
  constructor(record) {
    this.status = record?.status ?? {};
    this.lottery = this.status.lottery ?? {};
    this.entries = this.status.conflictSet ?? [];
    this.draws = this.lottery.draws ?? [];
    this.cuts = this.status.cuts ?? [];
    this.steps = [];
  }

  step(title) {
    this.current = { title, shows: [], wrong: [] };
    this.steps.push(this.current);
  }

  show(line) {
    this.current.shows.push(line);
  }

  wrong(line) {
    this.current.wrong.push(line);
  }

  ticketOf(run) {
    return this.entries.find((entry) => entry.action === "Lottery" && sameRun(entry.run, run));
  }

  endsByLottery(run) {
    return this.cuts.some((cut) => cut.action === "Lottery" && sameRun(cut.run, run));
  }

  payments(run) {
    return this.draws.reduce((n, draw) => n + (draw.paidBy ?? []).filter((by) => sameRun(by, run)).length, 0);
  }

  checkEntries() {
    this.step("The conflict set can be read in one way only");
    const seen = new Set();
    const unclear = (name) => typeof name !== "string" || name === "" || /[ \n/]/.test(name);
    this.entries.forEach((entry, i) => {
      const known = ["Return", "DropSpare", "Shrink", "Lottery"].includes(entry.action);
      if (!known || unclear(entry.owner) || unclear(entry.run?.namespace) || unclear(entry.run?.name) ||
          !(entry.gpus >= 1) || !/^(0(\.[0-9]+)?|1(\.0+)?)$/.test(entry.probability ?? "")) {
        this.wrong(`Entry ${i + 1} is malformed: ${lineOf(entry).trim()}`);
      }
      const key = `${entry.action} ${nameOf(entry.run)}`;
      if (seen.has(key)) {
        this.wrong(`Entry ${i + 1} repeats ${key}.`);
      }
      seen.add(key);
    });
    this.show(`${this.entries.length} entries`);
  }

  async checkDigest() {
    this.step("The conflict set is the one that was fixed");
    this.digest = await sha256(text.encode(this.entries.map(lineOf).join("")));
    this.show(`SHA-256 of its text: ${hex(this.digest)}`);
    if (!this.status.activatedAt) {
      this.wrong("activatedAt is missing.");
    }
    if (this.lottery.conflictSetDigest !== hex(this.digest)) {
      this.wrong(`conflictSetDigest is ${this.lottery.conflictSetDigest || "missing"}.`);
    }
    const total = this.status.conflicts;
    const gpus = this.entries.reduce((n, entry) => n + (entry.gpus ?? 0), 0);
    if (total && ((total.total ?? 0) !== this.entries.length || (total.gpus ?? 0) !== gpus)) {
      this.wrong(`It is said to have ${total.total} entries of ${total.gpus} GPUs, and has ${this.entries.length} of ${gpus}.`);
    }
  }

  async checkNonce() {
    this.step("The nonce is the one that was committed to");
    const nonce = this.lottery.nonce ?? "";
    if (!/^[0-9a-f]{64}$/.test(nonce)) {
      this.wrong(nonce === "" ? "The nonce is not revealed." : "The nonce is not 32 bytes in lower-case hexadecimal.");
      return false;
    }
    const commitment = hex(await sha256(bytesOf(nonce)));
    this.show(`SHA-256 of the nonce: ${commitment}`);
    if (this.lottery.commitment !== commitment) {
      this.wrong(`commitment is ${this.lottery.commitment || "missing"}.`);
    }
    this.seed = await sha256(joined(bytesOf(nonce), this.digest));
    this.show(`Seed: ${hex(this.seed)}`);
    return true;
  }

  async checkDraws() {
    this.step("The draws follow from the seed");
    const numbers = await Numbers.from(this.seed);
    const urn = new Urn(this.entries.filter((entry) => entry.run));
    for (const [i, draw] of this.draws.entries()) {
      const drawn = await urn.draw(numbers);
      if (drawn === null) {
        this.wrong(`Draw ${i + 1} is ${nameOf(draw.run)}, but no ticket was left.`);
        return;
      }
      this.show(`Draw ${i + 1}: one of ${counted(drawn.owners, "owner")}, then one of ${counted(drawn.tickets, "ticket")}: ` +
        `${nameOf(drawn.ticket.run)} of ${drawn.ticket.owner}`);
      if (!sameRun(draw.run, drawn.ticket.run) || draw.owner !== drawn.ticket.owner) {
        this.wrong(`Draw ${i + 1} is ${nameOf(draw.run)} of ${draw.owner}.`);
      }
      this.checkPayment(i, draw);
    }
    if (this.draws.length === 0) {
      this.show("Nothing was drawn.");
    }
  }

  checkPayment(i, draw) {
    const payers = draw.paidBy ?? [];
    for (const by of payers) {
      this.checkPayer(i, draw, by);
    }
    const pays = this.payments(draw.run) > 0;
    if (payers.length > 16) {
      this.wrong(`Draw ${i + 1} is paid by ${payers.length} Runs; at most 16 may pay.`);
    }
    if (pays && payers.length > 0) {
      this.wrong(`Draw ${i + 1} pays for another, and is paid for.`);
    } else if (pays && i === this.draws.length - 1) {
      this.wrong(`Draw ${i + 1} is the last, which ends by it, and cannot pay for another.`);
    } else if (payers.length > 0 && this.endsByLottery(draw.run)) {
      this.wrong(`Draw ${i + 1} is cut although others pay for it.`);
    }
  }

  checkPayer(i, draw, by) {
    const of = this.ticketOf(draw.run);
    const payer = this.ticketOf(by);
    if (!of || !payer) {
      this.wrong(`Draw ${i + 1} is paid by ${nameOf(by)}, and the conflict set does not list both for the lottery.`);
    } else if (ownerKey(of.owner) !== ownerKey(payer.owner)) {
      this.wrong(`Draw ${i + 1} is paid by ${nameOf(by)} of another owner.`);
    } else if (!Number.isInteger(of.priority) || !Number.isInteger(payer.priority) || payer.priority >= of.priority) {
      this.wrong(`Draw ${i + 1} is paid by ${nameOf(by)}, whose priority is not lower.`);
    }
    if (!this.endsByLottery(by)) {
      this.wrong(`Draw ${i + 1} is paid by ${nameOf(by)}, which is not cut.`);
    }
    if (this.payments(by) > 1) {
      this.wrong(`${nameOf(by)} pays more than once.`);
    }
  }

  checkCuts() {
    this.step("Only what was listed was cut, and only what was drawn was ended");
    const seen = new Set();
    this.cuts.forEach((cut, i) => {
      const key = `${cut.action} ${nameOf(cut.run)}`;
      this.show(`${key}: ${cut.gpus} GPUs`);
      if (seen.has(key)) {
        this.wrong(`Cut ${i + 1} repeats ${key}.`);
      }
      seen.add(key);
      this.checkCut(i, cut, key);
    });
    if (this.cuts.length === 0) {
      this.show("Nothing was cut.");
    }
    const last = this.draws.at(-1);
    const paid = this.draws.some((draw) => (draw.paidBy ?? []).length > 0); // payers may free more than was drawn
    if (last && !paid && !this.endsByLottery(last.run)) {
      this.wrong(`The last draw, ${nameOf(last.run)}, is not cut: drawing stops with the first ticket that is enough.`);
    }
  }

  checkCut(i, cut, key) {
    if (cut.action !== "Lottery" && this.endsByLottery(cut.run)) {
      this.wrong(`Cut ${i + 1} takes from ${nameOf(cut.run)}, which another cut ends anyway.`);
    }
    const listed = this.entries.filter((entry) => entry.action === cut.action && sameRun(entry.run, cut.run));
    if (listed.length === 0) {
      this.wrong(`Cut ${i + 1} is ${key}, which the conflict set does not list.`);
    } else if (!(cut.gpus >= 1) || cut.gpus > this.mostOf(cut)) {
      this.wrong(`Cut ${i + 1} is ${key} with ${cut.gpus} GPUs, more than the conflict set lists.`);
    }
    const narrows = cut.action === "Shrink" || cut.action === "Return";
    if (narrows !== (cut.width !== undefined && cut.width !== null)) {
      this.wrong(`Cut ${i + 1} states a width and must not, or states none and must.`);
    }
    if ((cut.action === "DropSpare") !== ((cut.spares ?? []).length > 0)) {
      this.wrong(`Cut ${i + 1} states spares and must not, or states none and must.`);
    }
    if (cut.action === "Lottery" && this.payments(cut.run) === 0 && !this.draws.some((draw) => sameRun(draw.run, cut.run))) {
      this.wrong(`Cut ${i + 1} ends ${nameOf(cut.run)}, which was not drawn and pays for no one.`);
    }
  }

  // mostOf is the most that a cut may take.
  mostOf(cut) {
    return this.entries.filter((entry) => sameRun(entry.run, cut.run) && counts(entry.action, cut.action))
      .reduce((n, entry) => n + entry.gpus, 0);
  }
}

// counts says whether what an entry lists may be taken by a cut: a Run that ends loses all that its entries list.
const counts = (listed, action) => listed === action || action === "Lottery";

// verify checks a Reservation's record: { verdict, steps[] {title, shows[], wrong[]} }. The verdict is "valid", "not
// valid", or "not drawn yet".
export async function verify(record) {
  const check = new Check(record);
  const { lottery, status } = check;
  const nothing = !lottery.nonce && check.draws.length === 0 && check.cuts.length === 0;
  if (nothing && !lottery.conflictSetDigest) {
    check.step("Nothing has been drawn");
    check.show(lottery.commitment ? `Commitment: ${lottery.commitment}` : "There is no commitment.");
    if (status.activatedAt) {
      check.show(`Activated at ${status.activatedAt}`);
    }
    return { verdict: "not drawn yet", steps: check.steps };
  }
  check.checkEntries();
  await check.checkDigest();
  if (nothing) {
    const wrong = check.steps[1].wrong.some((line) => line.startsWith("conflictSetDigest"));
    return { verdict: wrong ? "not valid" : "not drawn yet", steps: check.steps };
  }
  if (await check.checkNonce()) {
    await check.checkDraws();
  }
  check.checkCuts();
  const valid = check.steps.every((step) => step.wrong.length === 0);
  return { verdict: valid ? "valid" : "not valid", steps: check.steps };
}
