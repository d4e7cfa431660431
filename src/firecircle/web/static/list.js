// The list by keyboard, and fresh while the reader looks at its first page.
import { ask, say } from "/static/asking.js";

const rows = () => [...document.querySelectorAll("#list tbody tr")];
const pathOf = (row) => row?.querySelector(".c-title a").getAttribute("href");
let at = -1;

function choose(place) {
  const all = rows();
  if (!all.length) return;
  at = Math.min(Math.max(place, 0), all.length - 1);
  all.forEach((row, number) => row.classList.toggle("chosen", number === at));
  all[at].querySelector("a").focus({ preventScroll: true });
  all[at].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const writing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
  if (event.key === "Escape" && writing) writing.blur();
  if (writing) return;
  if (event.key === "j") choose(at + 1);
  else if (event.key === "k") choose(at - 1);
  else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search").select();
    document.getElementById("search").focus();
  } else if (event.key === "Enter" && at >= 0 && !event.target.closest("a, button")) location.href = pathOf(rows()[at]);
});

document.addEventListener("click", (event) => {
  if (event.target.closest("a, button, input, .c-pick") || getSelection().toString()) return;
  const row = event.target.closest("#list tbody tr");
  if (row) location.href = pathOf(row);
});

document.querySelector("form.filters").addEventListener("change", (event) => {
  if (event.target.matches("select")) event.target.form.requestSubmit();
});
document.querySelector("form.filters").addEventListener("submit", (event) => {
  // Empty fields stay out of the address.
  for (const field of event.target.elements) if (field.name && !field.value.trim()) field.disabled = true;
});
addEventListener("pageshow", () => { for (const field of document.querySelector("form.filters").elements) field.disabled = false; });

// -- several at once ---------------------------------------------------------------------------------------
const picked = () => rows().filter((row) => row.querySelector(".c-pick input").checked);
const idOf = (row) => decodeURIComponent(pathOf(row).slice("/circles/".length));
const addressOf = (row) => `/api/v1${pathOf(row)}`;

function tellPicked() {
  const number = picked().length;
  document.getElementById("chosen").hidden = !number;
  document.getElementById("how-many").textContent = `${number} selected`;
  document.getElementById("compare-chosen").disabled = number !== 2;
}

async function onEach(method, ending, body) {
  let done = 0;
  for (const row of picked()) if (await ask(method, addressOf(row) + ending, body)) done += 1;
  return done;
}

document.addEventListener("change", (event) => { if (event.target.matches(".c-pick input")) tellPicked(); });
document.addEventListener("click", async (event) => {
  const action = event.target.id;
  if (action === "label-chosen") {
    const label = prompt("The label of these circles; nothing takes it away");
    if (label === null) return;
    if (await onEach("PUT", "/label", { label: label.trim() || null })) location.reload();
  } else if (action === "delete-chosen") {
    if (!confirm(`Take ${picked().length} circles out of the store for good?`)) return;
    if (await onEach("DELETE", "")) location.reload();
  } else if (action === "compare-chosen") {
    const [first, second] = picked().map(idOf);
    location.href = `/circles/compare?${new URLSearchParams({ first, second })}`;
  } else if (action === "export-chosen") {
    const lines = [];
    for (const row of picked()) {
      const answer = await fetch(`${addressOf(row)}/export?format=json`).catch(() => null);
      if (!answer?.ok) return say("The server did not hand out all of them.");
      lines.push(JSON.stringify(await answer.json()));
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "application/jsonl" }));
    link.download = "circles.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  return undefined;
});

// -- how many -------------------------------------------------------------------------------------------
async function count() {
  const place = document.getElementById("count");
  if (!place) return;
  const answer = await fetch(`/api/v1/counts?${place.dataset.counted}`).catch(() => null);
  if (!answer?.ok) return;
  const { matching, total, counted_to: end, about, verdicts, wrong } = await answer.json();
  const said = (number) => (number === end ? `at least ${end.toLocaleString("en")}` : number.toLocaleString("en"));
  const all = total === end && about ? `about ${about.toLocaleString("en")}` : said(total);
  place.textContent = place.dataset.counted && (matching !== total || total === end) ? `${said(matching)} of ${all} circles` : `${all} circles`;
  const words = Object.values(verdicts);
  for (const part of document.querySelectorAll("[data-share]")) part.style.flexGrow = verdicts[part.dataset.share];
  for (const chip of document.querySelectorAll("[data-verdict]")) {
    const number = chip.dataset.verdict === "wrong" ? wrong : verdicts[chip.dataset.verdict] ?? words.reduce((sum, one) => sum + one, 0);
    chip.textContent = number.toLocaleString("en") + (number === end || (chip.dataset.verdict === "all" && words.includes(end)) ? "+" : "");
  }
}

count();

// -- the place of the reader, kept for the way back --------------------------------------------------------
const PLACE = `firecircle-place ${location.pathname}${location.search}`;
addEventListener("pagehide", () => {
  try { sessionStorage.setItem(PLACE, JSON.stringify({ top: scrollY, row: at >= 0 ? pathOf(rows()[at]) : null })); } catch { /* then not */ }
});
if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") {
  try {
    const { top, row } = JSON.parse(sessionStorage.getItem(PLACE)) ?? {};
    if (row) choose(rows().findIndex((one) => pathOf(one) === row));
    if (top) scrollTo({ top, behavior: "instant" });
  } catch { /* nothing was kept */ }
}

async function look() {
  const asked = new URLSearchParams(location.search);
  if (document.hidden || ["before", "from", "to", "limit", "order", "rising", "start"].some((name) => asked.has(name))) return;
  const answer = await fetch(`/api/v1/circles?${document.getElementById("count").dataset.counted}`).catch(() => null);
  if (!answer?.ok) return;
  const listed = (await answer.json()).circles.map((one) => `${one.id} ${one.status === "sitting"}`).join("\n");
  const shown = rows().map((row) => `${idOf(row)} ${row.classList.contains("sits")}`).join("\n");
  if (listed === shown) return;
  const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
  const fresh = page.querySelector("#list tbody");
  const old = document.querySelector("#list tbody");
  if (!fresh || !old) return location.reload();
  const chosen = at >= 0 ? pathOf(rows()[at]) : null;
  const kept = new Set(picked().map(pathOf));
  old.replaceWith(fresh);
  for (const row of rows()) row.querySelector(".c-pick input").checked = kept.has(pathOf(row));
  tellPicked();
  count();
  at = chosen ? rows().findIndex((row) => pathOf(row) === chosen) : -1;
  if (at >= 0) choose(at);
}
setInterval(look, 3000);
