// Sends the answer to the window that opened or framed this page. `origin` is the registered origin of the
// client: if that window has another origin, the browser discards the answer.
const { message, origin } = document.getElementById("answer").dataset;
const receiver = window.opener ?? (window.parent === window ? null : window.parent);
receiver?.postMessage(JSON.parse(message), origin);
