// Continues the logout after every frame has loaded: the load event of a window waits for its frames. Without JavaScript, the browser
// follows the Refresh header.
addEventListener("load", () => location.replace(document.getElementById("next").href));
