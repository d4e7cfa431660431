// Hidden characters in what scripts write and in what fields hold, by the rule of the server's own pages.
const source = document.querySelector('meta[name="firecircle-marked"]')?.content;
const MARKED = source ? new RegExp(source, "gu") : null;
const JOINTS = "\u200d\ufe0f";
const isPictogram = (character) => /[\u{2190}-\u{1ffff}]/u.test(character) && /\p{So}/u.test(character);

function joinsEmoji(text, place) {
  const before = [...text.slice(Math.max(0, place - 6), place)];
  const last = before.pop() ?? "";
  if (text[place] === "\ufe0f") return isPictogram(last);
  const picture = last === "\ufe0f" || /[\u{1f3fb}-\u{1f3ff}]/u.test(last) ? before.pop() ?? "" : last;
  return isPictogram(picture) && isPictogram([...text.slice(place + 1, place + 3)][0] ?? "");
}

const codeOf = (character) => `\u27e8U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;

// The text with the number of every hidden character in its place.
export function withCodes(text) {
  if (!MARKED) return text;
  return text.replace(MARKED, (character, place) =>
    (JOINTS.includes(character) && joinsEmoji(text, place) ? character : codeOf(character)));
}

// A field holds its text as it is, or it could not be sent on: what hides in it is told beneath it.
function tell(field) {
  const counts = new Map();
  const text = field.value.slice(0, 100000);
  for (const match of MARKED ? text.matchAll(MARKED) : []) {
    if (match[0] === "\u27e8" || (JOINTS.includes(match[0]) && joinsEmoji(text, match.index))) continue;
    counts.set(codeOf(match[0]), (counts.get(codeOf(match[0])) ?? 0) + 1);
  }
  let note = field.nextElementSibling?.matches(".hides") ? field.nextElementSibling : null;
  if (!counts.size) return note?.remove();
  if (!note) {
    note = document.createElement("small");
    note.className = "hides";
    field.after(note);
  }
  note.textContent = `hides in it: ${[...counts].slice(0, 12).map(([code, times]) => (times > 1 ? `${code} \u00d7${times}` : code)).join(", ")}`;
}

const FIELDS = "textarea, input:not([type]), input[type=text], input[type=search]";
export function tellAll(within = document) { within.querySelectorAll(FIELDS).forEach(tell); }
document.addEventListener("input", (event) => { if (event.target instanceof Element && event.target.matches(FIELDS)) tell(event.target); });
addEventListener("pageshow", () => tellAll());
tellAll();
