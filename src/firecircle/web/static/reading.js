// What helps to read a circle, on the server's page and in an exported file: tips, the replay, the answers.

// -- who saw a quote ------------------------------------------------------------------------------
const tip = document.getElementById("tip");
let tipFor = null;

function showTip(target) {
  tipFor = target;
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
document.addEventListener("mouseout", () => { if (!tipFor?.matches(":focus")) tip.hidden = true; });
document.addEventListener("focusout", () => { tip.hidden = true; });
document.addEventListener("scroll", () => {
  if (tip.hidden) return;
  if (tipFor.isConnected && tipFor.matches(":hover, :focus")) showTip(tipFor);
  else tip.hidden = true;
}, { capture: true, passive: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

// -- the dialogue round by round: nothing that came later is shown -------------------------------------
export function stopAfter(round) {
  for (const one of document.querySelectorAll("[data-round]")) one.classList.toggle("later", Number(one.dataset.round) > round);
  for (const one of document.querySelectorAll("[data-column]")) {
    one.classList.toggle("now", Number(one.dataset.column) === round);
    one.classList.toggle("later", Number(one.dataset.column) > round);
  }
  for (const one of document.querySelectorAll("[data-only]")) one.hidden = Number(one.dataset.only) !== round;
  const slider = document.getElementById("replay");
  if (!slider) return;
  slider.value = String(round);
  document.getElementById("replay-round").textContent = slider.value;
  document.getElementById("main").classList.toggle("rewound", Number(slider.value) < Number(slider.max));
}

document.addEventListener("input", (event) => {
  if (!(event.target instanceof HTMLInputElement) || event.target.id !== "replay") return;
  stopAfter(Number(event.target.value));
  const isLast = event.target.value === event.target.max;
  history.replaceState(null, "", isLast ? location.pathname + location.search : `#round-${event.target.value}`);
});

// -- answers in full, two of them beside each other -----------------------------------------------------
export function answerButton(voice, round) {
  return [...document.querySelectorAll("button.answer")].find((one) => one.dataset.voice === voice && one.dataset.ofRound === round) ?? null;
}

const MOST_PANELS = 2;
const panels = () => [...document.querySelectorAll("dialog.panel[open]")]; // one that closes is gone a moment later
const ofPanel = (panel) => answerButton(panel.dataset.voice, panel.dataset.ofRound);

// The page makes room: nothing that is open hides what it belongs to.
function arrange() {
  const open = panels();
  open.forEach((panel, place) => panel.classList.toggle("second", place < open.length - 1));
  document.body.classList.toggle("with-panel", open.length > 0);
  document.body.classList.toggle("with-two", open.length > 1);
  const shown = open.map(ofPanel);
  for (const one of document.querySelectorAll("button.answer")) one.classList.toggle("open", shown.includes(one));
  const last = open.at(-1);
  const at = last && ofPanel(last)?.id;
  history.replaceState(null, "", at ? `#${at}` : location.pathname + location.search);
  for (const button of last?.querySelectorAll("[data-step]") ?? []) button.disabled = !neighbour(last, button.dataset.step);
}

function newPanel() {
  for (const old of panels().slice(0, Math.max(0, panels().length - MOST_PANELS + 1))) old.close();
  const panel = document.createElement("dialog");
  panel.className = "panel";
  panel.setAttribute("aria-label", "one answer in full");
  const bar = document.createElement("p");
  bar.className = "steps";
  for (const [step, words] of [["left", "← Round"], ["right", "Round →"], ["up", "↑ Voice"], ["down", "↓ Voice"], ["", "Close"]]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: words });
    if (step) button.dataset.step = step;
    else button.className = "close";
    button.addEventListener("click", () => (step ? walk(panel, step) : panel.close()));
    bar.append(button);
  }
  panel.append(bar);
  panel.addEventListener("close", () => {
    const hadFocus = panel.contains(document.activeElement) || document.activeElement === document.body;
    const button = ofPanel(panel); // a live page may have exchanged it meanwhile
    panel.remove();
    arrange();
    if (hadFocus) button?.focus({ preventScroll: true });
  });
  document.body.append(panel);
  panel.show();
  return panel;
}

// The next cell with an answer in a direction of the grid.
function neighbour(panel, step) {
  const [, voice, round] = (ofPanel(panel)?.id.match(/^v(\d+)r(\d+)$/) ?? []).map(Number);
  const [down, right] = { left: [0, -1], right: [0, 1], up: [-1, 0], down: [1, 0] }[step];
  for (let far = 1; voice && far < 100; far += 1) {
    const found = document.getElementById(`v${voice + down * far}r${round + right * far}`);
    if (found?.matches("button.answer")) return found;
  }
  return null;
}

async function walk(panel, step) {
  const next = neighbour(panel, step);
  if (next) await show(panel, next);
}

document.addEventListener("keydown", (event) => {
  const last = panels().at(-1);
  if (!last || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") last.close();
  if (event.target.closest?.("input, select, textarea") || !event.key.startsWith("Arrow")) return;
  event.preventDefault();
  walk(last, event.key.slice("Arrow".length).toLowerCase());
});

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

async function show(panel, button) {
  const { voice, ofRound } = button.dataset;
  Object.assign(panel.dataset, { voice, ofRound });
  arrange();
  button.scrollIntoView({ block: "nearest", inline: "nearest" });
  const here = written(voice, ofRound);
  const content = here ? here.querySelector("article").cloneNode(true) : await fetched(voice, ofRound).catch(() => document.createTextNode("The server does not answer."));
  if (panel.dataset.voice !== voice || panel.dataset.ofRound !== ofRound) return; // the reader went on meanwhile
  panel.replaceChildren(panel.firstElementChild, content);
  panel.scrollTop = 0;
}

function openAnswer(button) {
  const open = panels().find((panel) => ofPanel(panel) === button);
  return open ? open.querySelector("button:not(:disabled)").focus() : show(newPanel(), button);
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button.answer") : null;
  if (button) openAnswer(button);
});

// An address leads to a cell (#v2r1) or a round (#round-2).
function goToAddress() {
  const place = decodeURIComponent(location.hash.slice(1));
  const round = /^round-([0-9]{1,2})$/.exec(place);
  if (round && document.getElementById("replay")) stopAfter(Number(round[1]));
  if (!/^v[0-9]{1,3}r[0-9]{1,2}$/.test(place)) return;
  const button = document.getElementById(place);
  if (button?.matches("button.answer")) openAnswer(button);
}
addEventListener("hashchange", goToAddress);
if (location.hash) goToAddress();

// -- what belongs together is lit together: words, cells and curves of a pattern or a voice ---------------
const numbers = (text) => (text ?? "").split(" ").filter(Boolean);

function light(event) {
  const from = event.target instanceof Element ? event.target.closest("[data-p], [data-v]") : null;
  const main = document.getElementById("main");
  const patterns = new Set(numbers(from?.dataset.p));
  const voices = new Set([...numbers(from?.dataset.v), ...numbers(from?.dataset.vs)]);
  if (from && from.dataset.p && !from.dataset.vs) {
    for (const one of document.querySelectorAll(".pattern[data-p]")) if (patterns.has(one.dataset.p)) numbers(one.dataset.vs).forEach((voice) => voices.add(voice));
  }
  if (from && from.dataset.v) {
    for (const one of document.querySelectorAll(".pattern[data-p]")) if (numbers(one.dataset.vs).includes(from.dataset.v)) patterns.add(one.dataset.p);
  }
  main.classList.toggle("linking", Boolean(from));
  for (const one of document.querySelectorAll("[data-p]")) one.classList.toggle("lit", numbers(one.dataset.p).some((number) => patterns.has(number)));
  for (const one of document.querySelectorAll("tr[data-v], g[data-v]")) one.classList.toggle("lit", voices.has(one.dataset.v));
}
for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, light);

// -- a chart for a slide ----------------------------------------------------------------------------------
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "visibility"];

function standingAlone(chart) {
  const copy = chart.cloneNode(true);
  const originals = [chart, ...chart.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((one, place) => {
    const style = getComputedStyle(originals[place]);
    for (const name of DRAWN) one.style.setProperty(name, style.getPropertyValue(name));
  });
  const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.style.setProperty("background", getComputedStyle(chart.closest("section")).backgroundColor);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

async function asPng({ text, width, height }) {
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [3 * width, 3 * height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
  } finally {
    URL.revokeObjectURL(address);
  }
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("button.copy") : null;
  const chart = button?.closest("section").querySelector("svg.chart");
  if (!chart) return;
  const drawing = standingAlone(chart);
  const isSvg = button.dataset.copy === "svg";
  const before = button.textContent;
  const blob = isSvg ? new Blob([drawing.text], { type: "image/svg+xml" }) : await asPng(drawing);
  try {
    if (isSvg) await navigator.clipboard.writeText(drawing.text);
    else await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
    button.textContent = "Copied";
  } catch {
    save(blob, `chart.${button.dataset.copy}`); // no clipboard here: it becomes a file
    button.textContent = "Saved";
  }
  setTimeout(() => { button.textContent = before; }, 2000);
});

// A link to the opening of every prompt leads out of the dialog and unfolds what it points at.
document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || !event.target.closest('a[href="#opening"]')) return;
  panels().forEach((panel) => panel.close());
  for (const one of document.querySelectorAll("#opening details")) one.open = true;
});

// What is copied out of a dialogue says who said it, and where.
document.addEventListener("copy", (event) => {
  const turn = getSelection().anchorNode?.parentElement?.closest(".turn");
  if (!turn) return;
  event.clipboardData.setData("text/plain", `${getSelection()}\n(${turn.dataset.source})`);
  event.preventDefault();
});
