// Whether the server is still there, said on every page; and news of the circles that a page follows.
import { lineToLoop } from "/static/watching.js";

const SIGN_OF_LIFE_MS = 10000;
const followed = new Map(); // the circles of this page, and whom to tell
const line = connected();
let lastThere = Date.now();

function connected() {
  if (typeof SharedWorker === "undefined") return lineToLoop();
  return new SharedWorker("/static/watching.js", { type: "module", name: "firecircle" }).port;
}

const here = () => line.postMessage({ circles: [...followed.keys()] });

line.onmessage = ({ data }) => {
  if (data.there) lastThere = Date.now();
  notice(data.there);
  for (const circle of data.changed ?? []) followed.get(circle.id)?.(circle);
};

function notice(isThere) {
  let banner = document.getElementById("gone");
  if (isThere) return banner?.remove();
  if (banner) return undefined;
  banner = document.createElement("p");
  banner.id = "gone";
  banner.className = "notice bad";
  banner.setAttribute("role", "alert");
  banner.textContent = `The server does not answer. This page shows what was known at ${new Date(lastThere).toLocaleTimeString()}; it goes on when the server is back.`;
  document.querySelector("main").before(banner);
  return undefined;
}

// Be told whenever this circle has changed.
export function follow(id, tell) {
  followed.set(id, tell);
  here();
}

export function unfollow(id) {
  followed.delete(id);
  here();
}

addEventListener("pagehide", () => line.postMessage({ leave: true }));
addEventListener("pageshow", here);
setInterval(here, SIGN_OF_LIFE_MS);
here();
