// Accounts, tokens and pruning. Whatever is secret is shown once, on this page, and kept nowhere.
import { ask, say } from "/static/asking.js";

function tell(words, secret) {
  const place = document.getElementById("secret");
  place.replaceChildren(document.createTextNode(`${words} `));
  const shown = document.createElement("code");
  shown.textContent = secret;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.textContent = "Copy";
  copy.addEventListener("click", () => navigator.clipboard?.writeText(secret).then(() => { copy.textContent = "Copied"; }));
  place.append(shown, " ", copy, " It is shown only now.");
  place.hidden = false;
}

const on = (id, act) => document.getElementById(id)?.addEventListener("submit", (event) => {
  event.preventDefault();
  act(Object.fromEntries(new FormData(event.target)), event.target);
});

on("new-token", async ({ note }, form) => {
  const made = await ask("POST", "/api/v1/tokens", { note });
  if (!made) return;
  form.reset();
  await redraw();
  tell("The new token:", made.secret);
});

on("new-password", async (given) => {
  if (await ask("PUT", "/api/v1/password", { old: given.old, new: given.new })) location.href = "/login";
});

on("new-account", async (given, form) => {
  const made = await ask("POST", "/api/v1/accounts", given);
  if (!made) return;
  form.reset();
  await redraw();
  tell(`${made.account.name} logs in with`, made.password);
});

on("prune", async ({ day, label }) => {
  const until = new Date(`${day}T00:00`).getTime() / 1000;
  const filters = { until, ...(label.trim() ? { label: label.trim() } : {}) };
  const answer = await fetch(`/api/v1/counts?${new URLSearchParams({ ...filters, exact: true })}`).catch(() => null);
  if (!answer?.ok) return say("The server did not count them.");
  const { matching } = await answer.json();
  if (!matching) return say("No circle is that old.");
  if (!confirm(`Take ${matching.toLocaleString("en")} circles out of the store for good?`)) return;
  const pruned = await ask("POST", "/api/v1/prune", { ...filters, expected: matching });
  if (pruned) await redraw();
  if (pruned) say(`${pruned.deleted.toLocaleString("en")} circles deleted.`);
});

async function redraw() {
  const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
  for (const part of ["accounts", "tokens", "actions"]) {
    const [fresh, old] = [page.getElementById(part), document.getElementById(part)];
    if (fresh && old) old.replaceWith(document.adoptNode(fresh));
  }
}

document.addEventListener("click", async (event) => {
  const { revoke } = event.target.dataset ?? {};
  if (revoke && confirm("Revoke this token? Programs that use it are refused from now on.")) {
    if (await ask("DELETE", `/api/v1/tokens/${encodeURIComponent(revoke)}`)) location.reload();
  }
  const name = event.target.closest?.("[data-account]")?.dataset.account;
  if (!name) return;
  const address = `/api/v1/accounts/${encodeURIComponent(name)}`;
  if ("remove" in event.target.dataset && confirm(`Remove the account ${name}, with its tokens?`)) {
    if (await ask("DELETE", address)) { await redraw(); say(`${name} is removed.`); }
  }
  if ("reset" in event.target.dataset && confirm(`Give ${name} a new password? The old one stops working.`)) {
    const made = await ask("PUT", address, { new_password: true });
    if (made) tell(`${name} logs in with`, made.password);
  }
});

document.addEventListener("change", async (event) => {
  if (!("role" in (event.target.dataset ?? {}))) return;
  const name = event.target.closest("[data-account]").dataset.account;
  const made = await ask("PUT", `/api/v1/accounts/${encodeURIComponent(name)}`, { role: event.target.value });
  await redraw();
  if (made) say(`${name} has the role ${made.account.role} now.`);
});
