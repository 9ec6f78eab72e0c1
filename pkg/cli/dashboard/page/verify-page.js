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

const check = async () => {
  const result = document.getElementById("result");
  let record;
  try {
    record = JSON.parse(document.getElementById("record").value);
  } catch (error) {
    result.replaceChildren(element("p", "bad", `This is not JSON: ${error.message}`));
    return;
  }
  result.replaceChildren(...shown(await verify(record)));
};

const load = async (file) => {
  document.getElementById("record").value = await file.text();
  await check();
};

document.getElementById("check").addEventListener("click", check);
document.getElementById("file").addEventListener("change", (event) => load(event.target.files[0]));
document.body.addEventListener("dragover", (event) => event.preventDefault());
document.body.addEventListener("drop", (event) => {
  event.preventDefault();
  load(event.dataTransfer.files[0]);
});

// For programs that check many records.
globalThis.verifyRecord = verify;
