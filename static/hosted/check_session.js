// OpenID Connect Session Management 1.0, 3.2: an application posts its client id and session_state to this frame. The frame answers
// `changed`, `unchanged` or `error`.
const name = document.documentElement.dataset.cookie;

function browserState() {
  const pair = document.cookie.split("; ").find((each) => each.startsWith(`${name}=`));
  return pair ? pair.slice(name.length + 1) : "";
}

async function judged(message, origin) {
  const parts = /^(\S+) ([0-9a-f]{64})\.(\S+)$/.exec(message);
  if (!parts) return "error";
  const [, client, digest, salt] = parts;
  const text = new TextEncoder().encode(`${client} ${origin} ${browserState()} ${salt}`);
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  const found = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return found === digest ? "unchanged" : "changed";
}

addEventListener("message", async (event) => {
  // An answer is sent to one origin. A window without an origin, such as a sandboxed frame, gets no answer.
  if (typeof event.data !== "string" || !event.source || event.origin === "null") return;
  // Without TLS, browsers provide `crypto.subtle` only on localhost; elsewhere the answer is `error`.
  const answer = await judged(event.data, event.origin).catch(() => "error");
  event.source.postMessage(answer, event.origin);
});
