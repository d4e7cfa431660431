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
  const answer = await fetch(location.pathname).catch(() => null);
  if (!answer) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("seat");
  if (fresh && fresh.dataset.state === seat().dataset.state) return;
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

function quote(words) {
  const row = document.querySelector("#answer template").content.cloneNode(true).firstElementChild;
  const [field, kind] = row.querySelectorAll("input, select");
  field.value = words;
  row.querySelector("button").addEventListener("click", () => row.remove());
  document.getElementById("shown").append(row);
  (words ? kind : field).focus();
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
  if (event.target.id === "pass") send({ verdict: null });
});
document.addEventListener("change", (event) => {
  if (event.target.name === "verdict") document.querySelector("#answer [name=falsehood]").placeholder = event.target.dataset.usual;
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "answer") return;
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(event.target));
  const patterns = [...document.querySelectorAll("#shown li")].map((row) => ({ quote: row.querySelector("input").value, type: row.querySelector("select").value }));
  say("");
  send({ ...fields, falsehood: fields.falsehood === "" ? null : Number(fields.falsehood), patterns });
});
begin();
