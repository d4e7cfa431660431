// The form that convenes a circle: it says what judging may cost before anybody is asked.
import { ask, say } from "/static/asking.js";

const form = document.getElementById("convene");
const estimate = document.getElementById("estimate");
const named = document.getElementById("models-label");
const number = (text) => (text === "" ? null : Number(text));

function asked() {
  const fields = Object.fromEntries(new FormData(form));
  const circle = fields.mode === "fire_circle";
  const models = { default: "", embedded: form.models.dataset.embedded, named: fields.models }[fields.circle];
  return {
    system: fields.system, application: fields.application, user: fields.user,
    turns: form.first_turn.checked ? [] : fields.turns && fields.turns !== "[]" ? JSON.parse(fields.turns) : null,
    mode: fields.mode,
    models: models.split(",").map((name) => name.trim()).filter(Boolean),
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
const price = (cost) => (cost === null ? "price unknown" : cost === 0 ? "free" : `$${cost.toFixed(4)}`);

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
  estimate.textContent = bound.refused ?? `${plural(bound.total.calls, "call")} to ${plural(bound.models.length, "voice")}, `
    + `${plural(bound.total.tokens_in, "token")} in, ${plural(bound.total.tokens_out, "token")} out, ${price(bound.total.cost_usd)}.`;
}

function changed() {
  named.hidden = form.circle.value !== "named";
  form.rounds.disabled = form.no_quorum.disabled = form.mode.value !== "fire_circle";
  clearTimeout(waiting);
  waiting = setTimeout(price_it, 300);
}
form.addEventListener("input", changed);

document.getElementById("example").addEventListener("change", (event) => {
  const chosen = event.target.selectedOptions[0];
  if (!chosen.value) return;
  for (const layer of ["system", "application", "user"]) form[layer].value = chosen.dataset[layer];
  form.turns.value = chosen.dataset.turns ?? "";
  form.first_turn.checked = form.turns.value === "[]";
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
changed();
