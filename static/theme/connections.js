/* Refreshes the list of open connections in place. Without this script the page loads itself again. */
"use strict";

(() => {
  const place = document.querySelector(".connections-refresh");
  const box = document.getElementById("connections-refresh");
  if (!place || !box) return;
  place.hidden = false;

  async function refresh() {
    const shown = document.getElementById("connections");
    // Whoever stands on a link in the list, or marks text there, keeps it.
    if (!box.checked || document.hidden || shown.contains(document.activeElement) || !document.getSelection().isCollapsed) return;
    const answer = await fetch(location.pathname, { credentials: "same-origin", cache: "no-store" });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("connections");
    if (!fresh) return;
    const before = shown.querySelector(".panel-scroll");
    const left = before ? before.scrollLeft : 0;
    shown.replaceWith(document.adoptNode(fresh));
    const after = fresh.querySelector(".panel-scroll");
    if (after) after.scrollLeft = left;
  }

  async function again() {
    try {
      await refresh();
    } catch {
      // The service is away for a moment: the list stays, and the next turn asks again.
    }
    setTimeout(again, Number(place.dataset.seconds) * 1000);
  }

  setTimeout(again, Number(place.dataset.seconds) * 1000);
})();
