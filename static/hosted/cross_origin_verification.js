// Gets the verifier from the application's page in a frame, then posts the form of this page.
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
// If the application's page never answers, the service refuses the empty verifier and reports it to the application.
setTimeout(() => send(""), 8000);
