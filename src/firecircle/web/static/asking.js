// Asking the API to change something: with the page's token, and with its refusals shown as they are.
import { withCodes } from "/static/marks.js";

const token = document.querySelector('meta[name="firecircle-token"]')?.content ?? "";

export function say(words) {
  const place = document.getElementById("said");
  if (place) place.textContent = withCodes(words);
}

// What came back, `true` when nothing did, or null after a refusal, which is shown.
export async function ask(method, address, body, { quietly = false, signal } = {}) {
  let answer;
  try {
    answer = await fetch(address, {
      method,
      signal,
      headers: { "x-firecircle-token": token, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (trouble) {
    if (trouble.name !== "AbortError" && !quietly) say("The server does not answer; is it still running?");
    return null;
  }
  if (answer.status === 204) return true;
  const reply = await answer.json().catch(() => ({}));
  if (answer.ok) return reply;
  if (quietly) return { refused: reply.detail ?? answer.statusText };
  say(reply.detail ?? answer.statusText);
  return null;
}
