// The form that convenes a circle: it says what judging may cost before anybody is asked.
import { ask, say } from "/static/asking.js";
import { tellAll, withCodes } from "/static/marks.js";

const form = document.getElementById("convene");
const estimate = document.getElementById("estimate");
const named = document.getElementById("models-label");
const number = (text) => (text === "" ? null : Number(text));

// -- the earlier turns: unknown, none, or these ----------------------------------------------------
const list = document.getElementById("turns");

function written() {
  return [...list.children].map((row) => ({ role: row.querySelector("input").value.trim(), content: row.querySelector("textarea").value }));
}

function addTurn({ role, content }) {
  const row = document.createElement("li");
  const who = document.createElement("input");
  Object.assign(who, { value: role, size: 10, maxLength: 100, required: true });
  who.setAttribute("aria-label", "who spoke");
  who.setAttribute("list", "roles");
  const what = document.createElement("textarea");
  Object.assign(what, { value: content, rows: 2, spellcheck: false, maxLength: 1000000, dir: "auto" });
  what.setAttribute("aria-label", "what was said");
  const away = document.createElement("button");
  Object.assign(away, { type: "button", textContent: "Remove" });
  away.addEventListener("click", () => { row.remove(); if (!list.children.length) form.known.value = "unknown"; changed(); });
  row.append(who, what, away);
  list.append(row);
  form.known.value = "these";
}

function setTurns(json) {
  list.replaceChildren();
  const turns = json ? JSON.parse(json) : null;
  for (const turn of turns ?? []) addTurn(turn);
  if (!list.children.length) form.known.value = turns ? "none" : "unknown";
}

form.known.addEventListener("change", () => {
  if (form.known.value === "these" && !list.children.length) addTurn({ role: "user", content: "" });
});
document.getElementById("add-turn").addEventListener("click", () => {
  addTurn({ role: list.children.length % 2 ? "assistant" : "user", content: "" });
  list.lastElementChild.querySelector("textarea").focus();
  changed();
});

function asked() {
  const fields = Object.fromEntries(new FormData(form));
  const circle = fields.mode === "fire_circle";
  const split = (names) => names.split(",").map((name) => name.trim()).filter(Boolean);
  const people = split(fields.people).map((name) => `person:${name.replace(/^person:/, "")}`);
  const usual = people.length ? form.circle.selectedOptions[0].dataset.models : ""; // by themselves, the server knows them
  const models = split({ default: usual, embedded: form.models.dataset.embedded, named: fields.models }[fields.circle]);
  return {
    system: fields.system, application: fields.application, user: fields.user,
    turns: { unknown: null, none: [], these: written() }[form.known.value],
    mode: fields.mode,
    models: [...models, ...people],
    focus: fields.focus || null,
    rounds: circle ? number(fields.rounds) : null,
    threshold: number(fields.threshold),
    budget_usd: number(fields.budget_usd),
    seed: number(fields.seed),
    label: fields.label.trim() || null,
    enforce_quorum: !(circle && form.no_quorum.checked),
  };
}

const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const here = (model) => /^(embedded|local|person):/.test(model);
const price = (cost, models) => {
  if (cost === null) return "price unknown";
  if (cost === 0) return models.every(here) ? "free" : "$0 by the prices known here";
  return cost < 0.0001 ? "less than $0.0001" : `$${cost.toFixed(4)}`;
};

let waiting;
let under;
async function price_it() {
  under?.abort();
  const { signal } = (under = new AbortController());
  const wish = asked();
  if (![wish.system, wish.application, wish.user].some((text) => text.trim())) {
    estimate.textContent = "Write a prompt to see what judging it may take.";
    return;
  }
  // Until the answer is here nothing is known: an old price must not stand beside a new circle.
  estimate.classList.remove("wrong");
  estimate.textContent = "Working it out …";
  const bound = await ask("POST", "/api/v1/estimate", wish, { quietly: true, signal });
  if (!bound) {
    if (!signal.aborted) estimate.textContent = "The server does not answer; is it still running?";
    return;
  }
  estimate.classList.toggle("wrong", Boolean(bound.refused));
  estimate.textContent = bound.refused ? withCodes(bound.refused) : `${plural(bound.total.calls, "call")} to ${plural(bound.models.length, "voice")}, `
    + `${bound.total.tokens_in || bound.total.tokens_out ? `${plural(bound.total.tokens_in, "token")} in, ${plural(bound.total.tokens_out, "token")} out, ` : ""}`
    + `${price(bound.total.cost_usd, bound.models)}.`;
}

function changed() {
  list.hidden = form.known.value !== "these";
  named.hidden = form.circle.value !== "named";
  form.rounds.disabled = form.no_quorum.disabled = form.mode.value !== "fire_circle";
  clearTimeout(waiting);
  waiting = setTimeout(price_it, 300);
}
form.addEventListener("input", changed);

document.getElementById("example").addEventListener("change", async (event) => {
  const example = event.target.value;
  if (!example) return;
  const answer = await fetch(`/convene?${new URLSearchParams({ example })}`).catch(() => null);
  if (!answer?.ok || event.target.value !== example) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const layer of ["system", "application", "user"]) form[layer].value = page.querySelector(`textarea[name=${layer}]`).value;
  setTurns(page.getElementById("earlier").dataset.turns);
  tellAll();
  changed(); // the form heard of the choice before its turns were here
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const go = document.getElementById("go");
  go.disabled = true;
  say("Convening …");
  const begun = await ask("POST", "/api/v1/evaluate", asked());
  if (begun) location.href = begun.url;
  else go.disabled = false;
});
setTurns(document.getElementById("earlier").dataset.turns);
changed();
