// A run that goes on is shown as far as it is: its progress, its judgements, and its plots once it is finished.
const PARTS = ["runs", "run-plots", "judged"];
const REACHABLE = "a, button, input, select, [tabindex]";

async function look() {
  if (document.hidden || !document.querySelector('[data-state="unfinished"]')) return;
  if (document.querySelector("#runs input:checked")) return; // somebody is choosing
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const goBack = whereTheReaderIs();
  for (const name of PARTS) {
    const fresh = page.getElementById(name);
    const old = document.getElementById(name);
    if (fresh && old && !fresh.isEqualNode(old)) old.replaceWith(fresh);
  }
  goBack();
}

// What exchanging a part would take from the reader: focus, and the place in whatever scrolls.
function whereTheReaderIs() {
  const focused = document.activeElement;
  const part = PARTS.find((name) => document.getElementById(name)?.contains(focused));
  const within = (name) => [...(document.getElementById(name)?.querySelectorAll(REACHABLE) ?? [])];
  const number = part ? within(part).indexOf(focused) : -1;
  const boxes = () => PARTS.flatMap((name) => [...document.querySelectorAll(`#${name} .wide`)]);
  const scrolled = boxes().map((box) => [box.getAttribute("aria-label"), box.scrollLeft]);
  // Judgements that are being read stay where they are when something grows above them.
  const list = document.getElementById("judgements");
  const isRead = list && list.getBoundingClientRect().top < innerHeight / 2;
  const lines = () => [...document.querySelectorAll("#judged tbody tr")];
  const seen = isRead ? lines().find((row) => row.getBoundingClientRect().bottom > 0) : null;
  const top = (seen ?? list)?.getBoundingClientRect().top;
  return () => {
    if (part && !focused.isConnected) {
      const fresh = within(part);
      const text = (one) => `${one.tagName} ${(one.closest("tbody tr") ?? one).textContent}`;
      const same = fresh.find((one) => text(one) === text(focused));
      (same ?? fresh[number])?.focus({ preventScroll: true });
    }
    for (const [name, left] of scrolled) {
      const box = boxes().find((one) => one.getAttribute("aria-label") === name);
      if (box) box.scrollLeft = left;
    }
    if (isRead) {
      const now = (seen && lines().find((row) => row.textContent === seen.textContent)) ?? list;
      scrollBy({ top: now.getBoundingClientRect().top - top, behavior: "instant" });
    }
  };
}

async function keepLooking() {
  await look();
  setTimeout(keepLooking, 2000);
}
setTimeout(keepLooking, 2000);
