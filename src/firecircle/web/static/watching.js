// One loop asks the server for all open pages of a browser: how far their circles are, and whether it is still there.
// Runs in a shared worker; where there is none, each page runs it for itself.
const LIVE_MS = 300;
const CALM_MS = 1500;
const PATIENCE_MS = 2500;
const FORGOTTEN_MS = 30000;

const readers = new Map(); // who is told, and the circles each follows with the number of the last known event
let looking = false;

function arrive(reader) {
  reader.onmessage = ({ data }) => {
    if (data.leave) return readers.delete(reader);
    const known = readers.get(reader)?.circles ?? new Map();
    const circles = new Map(data.circles.map((id) => [id, known.get(id) ?? -1]));
    readers.set(reader, { circles, at: Date.now() });
    if (!looking) {
      looking = true;
      look();
    }
  };
}

async function look() {
  for (const [reader, { at }] of readers) if (Date.now() - at > FORGOTTEN_MS) readers.delete(reader);
  if (!readers.size) {
    looking = false;
    return;
  }
  const oldest = new Map();
  for (const { circles } of readers.values()) {
    for (const [id, seq] of circles) oldest.set(id, Math.min(seq, oldest.get(id) ?? seq));
  }
  const follow = [...oldest].map(([id, seq]) => `${seq} ${id}`).join("\n");
  try {
    const answer = await fetch(`/api/v1/live?${new URLSearchParams({ follow })}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    tell(answer.ok ? (await answer.json()).circles : []);
  } catch {
    for (const reader of readers.keys()) reader.postMessage({ there: false });
  }
  setTimeout(look, oldest.size ? LIVE_MS : CALM_MS);
}

function tell(news) {
  for (const [reader, { circles }] of readers) {
    const changed = [];
    for (const circle of news) {
      if (!circles.has(circle.id)) continue;
      if (circle.seq > circles.get(circle.id) || circle.status !== "sitting") changed.push(circle);
      circles.set(circle.id, circle.seq);
      if (circle.status !== "sitting") circles.delete(circle.id);
    }
    reader.postMessage({ there: true, changed });
  }
}

if (typeof SharedWorkerGlobalScope !== "undefined" && self instanceof SharedWorkerGlobalScope) {
  self.onconnect = (event) => {
    arrive(event.ports[0]);
    event.ports[0].start?.();
  };
}

// For a page without a shared worker: the other end of a line to this loop.
export function lineToLoop() {
  const { port1, port2 } = new MessageChannel();
  arrive(port2);
  return port1;
}
