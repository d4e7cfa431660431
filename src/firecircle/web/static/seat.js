// A person's place in a circle: the clock, the answer, and the next question when it comes.
import { ask, say } from "/static/asking.js";
import { tellAll } from "/static/marks.js";

const LOOK_AGAIN_MS = 2000;
const seat = () => document.getElementById("seat");
let ends = 0;
let reminded = false;

function begin() {
  ends = performance.now() + Number(seat().dataset.seconds) * 1000;
  reminded = false;
  tick();
  restore();
}

// What is half written survives a reload, in this tab and for this question.
const written = () => ({
  ...Object.fromEntries(new FormData(document.getElementById("answer"))),
  patterns: [...document.querySelectorAll("#shown li")].map((row) => ({ quote: row.querySelector("input").value, type: row.querySelector("select").value })),
});
const draft = () => `${location.pathname} ${seat().dataset.round}`;

function restore() {
  const form = document.getElementById("answer");
  const kept = form && sessionStorage.getItem(draft());
  if (!kept) return;
  const { patterns, ...fields } = JSON.parse(kept);
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  for (const one of patterns) quote(one.quote, one.type);
}

function tick() {
  const clock = document.getElementById("clock");
  if (!clock) return;
  const left = Math.max(0, Math.ceil((ends - performance.now()) / 1000));
  clock.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  if (reminded || left > Number(seat().dataset.half)) return;
  reminded = true;
  document.getElementById("reminder").textContent = "Half of your time has passed.";
  document.title = `Half of your time has passed · ${document.title}`;
}

// What is half written stays until another question takes its place.
async function look() {
  const known = { "if-none-match": `"${seat().dataset.state}"` };
  const answer = await fetch(location.pathname, { headers: known }).catch(() => null);
  if (!answer || answer.status === 304) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("seat");
  document.title = page.title;
  if (fresh) {
    seat().replaceWith(fresh);
    tellAll();
    begin();
    scrollTo(0, 0);
  } else if (answer.status === 404) {
    clearInterval(looking);
    seat().replaceChildren(over());
  }
}

function over() {
  const section = document.createElement("section");
  const title = document.createElement("h1");
  title.textContent = "The circle is over";
  const words = document.createElement("p");
  words.textContent = "Thank you. You may close this page.";
  section.append(title, words);
  return section;
}

const looking = setInterval(look, LOOK_AGAIN_MS);
setInterval(tick, 500);

let selected = "";
document.addEventListener("selectionchange", () => {
  const selection = getSelection();
  const place = selection.anchorNode?.parentElement?.closest("#seat .layer .text");
  if (place && !selection.isCollapsed) selected = String(selection).trim();
});

function quote(words, type) {
  const row = document.querySelector("#answer template").content.cloneNode(true).firstElementChild;
  const [field, kind] = row.querySelectorAll("input, select");
  field.value = words;
  if (type) kind.value = type;
  row.querySelector("button").addEventListener("click", () => row.remove());
  document.getElementById("shown").append(row);
  if (!type) (words ? kind : field).focus();
}

const send = async (body) => {
  const taken = await ask("POST", seat().dataset.answer, { round: Number(seat().dataset.round), ...body });
  if (taken) look();
};

document.addEventListener("click", (event) => {
  if (event.target.id === "quote") {
    quote(selected);
    selected = "";
  }
  const leaves = event.target.id === "pass" && seat().dataset.round === "1";
  if (event.target.id === "pass" && (!leaves || confirm("Leave the circle without an answer?"))) send({ verdict: null });
});
document.addEventListener("input", (event) => {
  if (event.target.closest("#answer")) sessionStorage.setItem(draft(), JSON.stringify(written()));
});
document.addEventListener("change", (event) => {
  if (event.target.name === "verdict") document.querySelector("#answer [name=falsehood]").placeholder = event.target.dataset.usual;
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "answer") return;
  event.preventDefault();
  const said = written();
  say("");
  send({ ...said, falsehood: said.falsehood === "" ? null : Number(said.falsehood) });
});
begin();
