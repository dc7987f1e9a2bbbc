// Continues after every frame has loaded: the load event of a window waits for its frames. Without this script, the Refresh header continues.
addEventListener("load", () => location.replace(document.getElementById("next").href));
