import { verify } from "./verify.js";

// element makes an element with text.
const element = (name, className, content) => {
  const of = document.createElement(name);
  of.className = className;
  of.textContent = content;
  return of;
};

// shown draws what a check has found.
export const shown = (found) => {
  const parts = [element("p", `verdict ${found.verdict === "valid" ? "good" : found.verdict === "not valid" ? "bad" : ""}`,
    `This record is ${found.verdict}.`)];
  for (const step of found.steps) {
    parts.push(element("h3", step.wrong.length > 0 ? "bad" : "good", `${step.wrong.length > 0 ? "✗" : "✓"} ${step.title}`));
    parts.push(...step.shows.map((line) => element("p", "shows", line)));
    parts.push(...step.wrong.map((line) => element("p", "bad", line)));
  }
  return parts;
};

// what is said of a text that is no record.
const refused = (words) => [element("p", "bad", words)];

// judged is what is said of a text. What is read must not pass for what it is not: a list, or another object.
const judged = async (text) => {
  let record;
  try {
    record = JSON.parse(text);
  } catch (error) {
    return refused(`This is not JSON: ${error.message}`);
  }
  if ((record?.kind ?? (record?.spec?.runRef ? "Reservation" : "")) !== "Reservation") {
    return refused("This is not one Reservation. Save one with: kubectl get reservation NAME -n NAMESPACE -o json");
  }
  if (!globalThis.crypto?.subtle) {
    return refused("This browser computes no SHA-256 for a page that is opened like this one. Open it in another browser.");
  }
  try {
    return shown(await verify(record));
  } catch (error) {
    return refused(`This record is not valid: it is not as a Reservation is written (${error.message}).`);
  }
};

let asked = 0; // what was asked for last is what is answered

const check = async () => {
  const mine = ++asked;
  const result = document.getElementById("result");
  result.replaceChildren();
  const parts = await judged(document.getElementById("record").value);
  if (mine === asked) {
    result.replaceChildren(...parts);
  }
};

const load = async (file) => {
  if (file) {
    document.getElementById("record").value = await file.text();
    await check();
  }
};

const input = document.getElementById("record");
document.getElementById("check").addEventListener("click", check);
input.addEventListener("input", () => { // what has been said is not of this
  asked++;
  document.getElementById("result").replaceChildren();
});
document.getElementById("file").addEventListener("change", (event) => load(event.target.files[0]));
document.body.addEventListener("dragover", (event) => event.preventDefault());
document.body.addEventListener("drop", (event) => {
  const file = event.dataTransfer.files[0];
  if (file) { // a text that is dropped goes where it is dropped
    event.preventDefault();
    load(file);
  }
});

// For programs that check many records.
globalThis.verifyRecord = verify;
