// What only the server's page can do: follow a sitting circle, call it off, label it, take it out.
import { ask, say } from "/static/asking.js";
import { follow, unfollow } from "/static/live.js";
import { tellAll } from "/static/marks.js";
import { answerButton, stopAfter } from "/static/reading.js";

const bar = () => document.getElementById("part-actions");
const address = `/api/v1/circles/${encodeURIComponent(bar().dataset.circle)}`;

// -- live -----------------------------------------------------------------------------------------
let wanted = false;
let busy = false;

// The page is asked for again and only what changed is exchanged: unfolded parts, places and focus stay.
async function refresh() {
  wanted = true;
  if (busy) return;
  busy = true;
  try {
    while (wanted) {
      wanted = false;
      const answer = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const goBack = whereTheReaderIs();
      exchange(fresh);
      tellAll();
      goBack();
    }
  } finally {
    busy = false;
  }
}

// What exchanging a part would take from the reader: focus, the place in what scrolls, the round of the replay.
function whereTheReaderIs() {
  const focused = document.activeElement;
  const part = focused?.closest("#main > [id]")?.id;
  const reachable = "a, button, input, summary, [tabindex]";
  const number = part ? [...document.getElementById(part).querySelectorAll(reachable)].indexOf(focused) : -1;
  const scrolled = [...document.querySelectorAll("#main > [id]")].flatMap((one) =>
    [...one.querySelectorAll(".wide, .scroll")].map((box, at) => [one.id, at, box.scrollLeft, box.scrollTop]));
  const slider = document.getElementById("replay");
  const stopped = slider && Number(slider.value) < Number(slider.max) ? Number(slider.value) : null;
  const isWide = document.getElementById("show-ti")?.checked;
  return () => {
    const box = document.getElementById("show-ti");
    if (box && isWide) box.checked = true;
    if (part && !focused.isConnected) {
      const { voice, ofRound } = focused.dataset;
      const same = voice ? answerButton(voice, ofRound) : focused.id ? document.getElementById(focused.id) : null;
      (same ?? document.getElementById(part)?.querySelectorAll(reachable)[number])?.focus({ preventScroll: true });
    }
    for (const [name, at, left, top] of scrolled) {
      const box = document.getElementById(name)?.querySelectorAll(".wide, .scroll")[at];
      if (box) [box.scrollLeft, box.scrollTop] = [left, top];
    }
    if (stopped !== null) stopAfter(stopped);
  };
}

function exchange(page) {
  const fresh = [...page.querySelectorAll("#main > *")];
  const main = document.getElementById("main");
  const names = new Set(fresh.map((one) => one.id).filter(Boolean));
  for (const old of [...main.children]) if (!old.id || !names.has(old.id)) old.remove();
  let place = null;
  for (const one of fresh) {
    const old = one.id ? document.getElementById(one.id) : null;
    const next = place ? place.nextSibling : main.firstChild;
    if (old && old.isEqualNode(one)) {
      if (old !== next) main.insertBefore(old, next);
      place = old;
      continue;
    }
    if (old && one.id === "part-actions" && old.dataset.status === one.dataset.status) {
      place = old; // a half-written label, and what was said, stay
      continue;
    }
    const unfolded = old ? [...old.querySelectorAll("details")].map((part) => part.open) : [];
    [...one.querySelectorAll("details")].forEach((part, number) => { if (unfolded[number]) part.open = true; });
    if (old) old.replaceWith(one); else main.insertBefore(one, next);
    place = one;
  }
}

function heard(circle) {
  for (const retry of circle.retries) say(`${retry.model} tries again (${retry.attempt}): ${retry.reason}`);
  refresh().then(() => {
    if (circle.status === "sitting") return;
    unfollow(circle.id);
    say(circle.status === null ? "The circle was deleted." : "The circle is over.");
  });
}

if (bar().dataset.status === "sitting") follow(bar().dataset.circle, heard);

// -- by keyboard --------------------------------------------------------------------------------------
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input:not([type=range], [type=checkbox]), select, textarea")) return;
  const link = { j: "older", k: "newer", l: "to-list", n: "next-review" }[event.key];
  if (link) document.getElementById(link)?.click();
  const label = { a: "attack", b: "benign", u: "unclear" }[event.key];
  if (label) document.querySelector(`#label-form [data-label=${label}]`)?.click();
  const slider = document.getElementById("replay");
  const step = { "[": -1, "]": 1 }[event.key];
  if (slider && step) {
    slider.value = String(Number(slider.value) + step);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (event.key === "t") document.getElementById("show-ti")?.click();
});

document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element ? event.target.dataset.link : null;
  if (!link) return;
  const whole = new URL(link, location.href).href;
  await navigator.clipboard.writeText(whole).then(() => say("Link copied."), () => say(whole)); // no clipboard without TLS
});

// -- acting ---------------------------------------------------------------------------------------
document.addEventListener("click", async (event) => {
  if (!(event.target instanceof Element)) return;
  if (event.target.id === "cancel") {
    event.target.disabled = true;
    if (await ask("POST", `${address}/cancel`)) say("Asked to cancel; it ends within a few seconds.");
    else event.target.disabled = false;
  }
  if (event.target.id === "delete" && confirm("Take this circle out of the store for good?")) {
    if (await ask("DELETE", address)) location.href = "/circles";
  }
});

// -- what a person says of the prompt -------------------------------------------------------------------
async function review(label) {
  const form = document.getElementById("label-form");
  const saved = await ask("PUT", `${address}/label`, { label: label || null, note: form.note.value, rater: form.dataset.rater });
  if (!saved) return;
  form.label.value = saved.label ?? "";
  for (const one of form.querySelectorAll("[data-label]")) one.setAttribute("aria-pressed", String(one.dataset.label === saved.label));
  say(saved.label ? `Label ${saved.label} saved.` : "Label taken away.");
  const wasBlind = document.getElementById("part-blind");
  await refresh();
  if (wasBlind) document.getElementById("next-review").focus();
}

document.addEventListener("click", (event) => {
  const chosen = event.target instanceof Element ? event.target.closest("#label-form [data-label]") : null;
  if (chosen) review(chosen.dataset.label);
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "label-form") return;
  event.preventDefault();
  review(event.target.label.value.trim());
});
