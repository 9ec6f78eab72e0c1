// Times, numbers and commands as people read them.

// The zone's name is that of the instant: summer has another.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

// at is an instant in local time, with the day unless it is today's, and the year unless it is this one.
export const at = (instant) => {
  const date = new Date(instant);
  const today = new Date();
  if (date.toDateString() === today.toDateString()) {
    return clock.format(date);
  }
  return `${(date.getFullYear() === today.getFullYear() ? day : dayOfYear).format(date)}, ${clock.format(date)}`;
};

// localTimes is a text of the scheduler with the instants in it, which it writes in UTC, in local time. What is an example of how to
// write one stays.
export const localTimes = (text) => text?.replace(/(\b(?:such as|write it as|write a time as) )?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g,
  (written, example) => (example ? written : at(written)));

// span is a length of time in at most two units.
export const span = (milliseconds) => {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const first = units.findIndex(([, n]) => seconds >= n);
  if (first < 0) {
    return "0s";
  }
  const [unit, n] = units[first];
  const rest = units[first + 1];
  const more = rest ? Math.floor((seconds % n) / rest[1]) : 0;
  return `${Math.floor(seconds / n)}${unit}${more > 0 ? ` ${more}${rest[0]}` : ""}`;
};

// away is how far an instant is from another: "in 5m" or "5m ago".
export const away = (instant, now) => {
  const left = new Date(instant) - now;
  return left >= 0 ? `in ${span(left)}` : `${span(-left)} ago`;
};

// percent is a probability in whole percent, which is 0 or 100 only where it is certain.
export const percent = (probability) => {
  const whole = Math.round(100 * Number(probability));
  if (whole === 0 && Number(probability) > 0) {
    return "<1 %";
  }
  return whole === 100 && Number(probability) < 1 ? ">99 %" : `${whole} %`;
};

// hours are GPU-hours.
export const hours = (n) => Number(n).toLocaleString(undefined, { maximumFractionDigits: 1 });

export const gpus = (n) => `${n} GPU${n === 1 ? "" : "s"}`;

// split parts NAMESPACE/NAME.
export const split = (key) => {
  const at = key.indexOf("/");
  return { namespace: key.slice(0, at), name: key.slice(at + 1) };
};

// command is a command of jobtree about something in a namespace.
export const command = (verb, key) => {
  const { namespace, name } = split(key);
  return `kubectl runs ${verb} -n ${namespace} ${name}`;
};

// What may happen to a Run at an activation.
export const actions = { Return: "gives back GPUs on loan", DropSpare: "loses a spare", Shrink: "is shrunk", Lottery: "is ended" };

const fates = { DropSpare: ["lose spares", "losing spares"], Shrink: ["be shrunk", "being shrunk"], Lottery: ["be ended", "being ended"] };

const fate = (cut) => {
  const [will, being] = fates[cut.action] ?? ["be cut", "being cut"];
  const what = cut.width ? ` to ${gpus(cut.width)}` : cut.action === "DropSpare" ? ` (${gpus(cut.gpus)})` : "";
  return Number(cut.probability) >= 1 ? `will ${will}${what}` : `${percent(cut.probability)} chance of ${being}${what}`;
};

// threat is all that a risk may do to its Run, such as "will be shrunk to 8 GPUs".
export const threat = (risk) => (risk.cuts?.length > 0 ? risk.cuts.map(fate).join(", ") : `${percent(risk.probability)} chance of being cut`);
