// Goes on when every frame has loaded: the load event of a window waits for its frames. Without this script the header Refresh goes on.
addEventListener("load", () => location.replace(document.getElementById("next").href));
