// What helps to read a circle, on the server's page and in an exported file: tips, the replay, the answers.

// -- who saw a quote ------------------------------------------------------------------------------
const tip = document.getElementById("tip");

function showTip(target) {
  tip.textContent = target.dataset.tip;
  tip.hidden = false;
  const box = target.getClientRects()[0] ?? target.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left), innerWidth - tip.offsetWidth - 8);
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
}

const tipped = (event) => (event.target instanceof Element ? event.target.closest("[data-tip]") : null);
for (const kind of ["mouseover", "focusin"]) {
  document.addEventListener(kind, (event) => { const found = tipped(event); if (found) showTip(found); });
}
for (const kind of ["mouseout", "focusout", "scroll"]) {
  document.addEventListener(kind, () => { tip.hidden = true; }, kind === "scroll" ? { capture: true, passive: true } : undefined);
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

// -- the dialogue round by round ------------------------------------------------------------------
export function stopAfter(round) {
  for (const one of document.querySelectorAll("[data-round]")) one.classList.toggle("later", Number(one.dataset.round) > round);
  for (const one of document.querySelectorAll("[data-column]")) {
    one.classList.toggle("now", Number(one.dataset.column) === round);
    one.classList.toggle("later", Number(one.dataset.column) > round);
  }
  for (const one of document.querySelectorAll("[data-only]")) one.hidden = Number(one.dataset.only) !== round;
  const shown = document.getElementById("replay-round");
  if (shown) shown.textContent = String(round);
}

document.addEventListener("input", (event) => {
  if (event.target instanceof HTMLInputElement && event.target.id === "replay") stopAfter(Number(event.target.value));
});

// -- one answer in full ---------------------------------------------------------------------------
export function answerButton(voice, round) {
  return [...document.querySelectorAll("button.answer")].find((one) => one.dataset.voice === voice && one.dataset.ofRound === round) ?? null;
}

function dialogWith(content, voice, round) {
  document.getElementById("answer")?.remove();
  const dialog = document.createElement("dialog");
  dialog.id = "answer";
  dialog.setAttribute("aria-label", "one answer in full");
  const close = document.createElement("button");
  close.type = "button";
  close.className = "close";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(close, content);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    dialog.remove();
    // A live page may have exchanged the button meanwhile.
    if (document.activeElement === document.body) answerButton(voice, round)?.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
}

function written(voice, round) {
  for (const one of document.querySelectorAll("details[data-answer]")) {
    if (one.dataset.voice === voice && one.dataset.ofRound === round) return one;
  }
  return null;
}

async function fetched(voice, round) {
  const answer = await fetch(`${location.pathname}/answer?${new URLSearchParams({ voice, round })}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector("article, main") ?? document.createTextNode("This answer cannot be shown.");
}

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("button.answer") : null;
  if (!button) return;
  const { voice, ofRound } = button.dataset;
  const here = written(voice, ofRound);
  if (here) {
    dialogWith(here.querySelector("article").cloneNode(true), voice, ofRound);
  } else {
    dialogWith(await fetched(voice, ofRound), voice, ofRound);
  }
});

// A link to the opening of every prompt leads out of the dialog and unfolds what it points at.
document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || !event.target.closest('a[href="#opening"]')) return;
  document.getElementById("answer")?.close();
  for (const one of document.querySelectorAll("#opening details")) one.open = true;
});
