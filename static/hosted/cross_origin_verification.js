// Loads a page of the application in a frame, and requests from that page the verifier of the login ticket. Then submits the form of this
// page with the verifier.
const form = document.forms[0];
const { id, frame, origin } = form.dataset;
let isSent = false;

function send(verifier) {
  if (isSent) return;
  isSent = true;
  form.elements.verifier.value = verifier;
  form.submit();
}

const element = document.createElement("iframe");
element.hidden = true;
addEventListener("message", (event) => {
  if (event.origin !== origin || event.source !== element.contentWindow) return;
  if (event.data?.type === "ready") event.source.postMessage({ type: "co_verifier_request", request: { id } }, origin);
  if (event.data?.type === "co_verifier_response") send(String(event.data.response?.verifier ?? ""));
});
element.src = frame;
document.body.append(element);
// If the page of the application does not answer within 8 seconds, submit an empty verifier: the service refuses the empty verifier and
// reports the error to the application.
setTimeout(() => send(""), 8000);
