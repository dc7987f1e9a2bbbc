/* Refreshes the preview after every change and adds a picker to each color. Without this script, a button refreshes the preview. */
"use strict";

(() => {
  const QUIET_MS = 350;
  const form = document.getElementById("looks");
  if (!form) return;
  const frame = document.getElementById("looks-preview");
  const status = document.getElementById("looks-status");
  const PLAIN = /^#[0-9a-f]{6}$/i;
  const SHORT = /^#[0-9a-f]{3}$/i;
  let timer = 0;
  let turn = 0;

  function whole(color) {
    return SHORT.test(color) ? `#${[...color.slice(1)].map((digit) => digit + digit).join("")}` : color;
  }

  function addPicker(field) {
    const picker = document.createElement("input");
    picker.type = "color";
    picker.setAttribute("aria-label", `${field.labels[0].textContent.replace(/:\s*$/, "")}: choose`);
    const follow = () => {
      const color = whole(field.value);
      if (PLAIN.test(color)) picker.value = color;
    };
    follow();
    field.addEventListener("input", follow);
    picker.addEventListener("input", (event) => {
      event.stopPropagation();
      field.value = picker.value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    field.after(picker);
  }

  function show(notices, problems) {
    for (const place of form.querySelectorAll(".looks-notice")) {
      const name = place.dataset.for;
      const bad = problems[name];
      place.textContent = bad ? bad.join(" ") : notices[name] || "";
      place.classList.toggle("bad", Boolean(bad));
    }
  }

  async function refresh() {
    const mine = ++turn;
    const sent = new FormData(form);
    // Files are not part of a preview, because each keystroke would send them again. They have a separate upload button.
    for (const [name, value] of [...sent]) if (value instanceof File) sent.delete(name);
    try {
      const answer = await fetch(form.dataset.preview, {
        method: "POST",
        body: sent,
        credentials: "same-origin",
        headers: { Accept: "application/json" },
      });
      if (mine !== turn) return;
      if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
      const found = await answer.json();
      show(found.notices, found.problems);
      if (found.address) {
        // Replaces the history entry, so that the back button leaves this page.
        frame.contentWindow.location.replace(found.address);
        status.textContent = "Not saved yet.";
      } else {
        status.textContent = "Correct the marked fields to see a preview.";
      }
    } catch {
      if (mine === turn) status.textContent = "The preview failed. Choose Preview to try again.";
    }
  }

  for (const field of form.querySelectorAll("[data-color]")) addPicker(field);
  status.textContent = "The preview shows changes immediately. Changes are saved when you press Save. Uploads are saved at once.";
  form.addEventListener("input", (event) => {
    if (event.target.type === "file") return;
    clearTimeout(timer);
    timer = setTimeout(refresh, QUIET_MS);
  });
})();
