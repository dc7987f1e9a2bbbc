/* Refreshes the list of open connections in place. Without this script, the page reloads itself. */
"use strict";

(() => {
  const place = document.querySelector(".connections-refresh");
  const box = document.getElementById("connections-refresh");
  if (!place || !box) return;
  place.hidden = false;

  async function refresh() {
    const shown = document.getElementById("connections");
    // Do not replace the list while a link in it has the focus or text in it is selected.
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
      // The service is unavailable: keep the list and try again at the next interval.
    }
    setTimeout(again, Number(place.dataset.seconds) * 1000);
  }

  setTimeout(again, Number(place.dataset.seconds) * 1000);
})();
