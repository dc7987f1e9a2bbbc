// Shows typed passwords on request and marks a form while it is being sent. All pages work without this script.
for (const button of document.querySelectorAll("button.reveal")) {
  const input = document.getElementById(button.getAttribute("aria-controls"));
  const show = (isShown) => {
    input.type = isShown ? "text" : "password";
    button.setAttribute("aria-pressed", String(isShown));
  };
  button.hidden = false;
  button.addEventListener("click", () => show(input.type === "password"));
  // Change the field back to a password field before the form is sent: browsers store the values of text fields for autocompletion.
  input.form.addEventListener("submit", () => show(false));
}

// Ignore a second click for a few seconds, because it would send the form twice. After this time, the user can send the form again: the
// page may still be open, because the response can open an application outside the browser.
const BUSY_MS = 5000;
for (const form of document.forms) {
  const settle = () => form.removeAttribute("aria-busy");
  form.addEventListener("submit", (event) => {
    if (form.hasAttribute("aria-busy")) {
      event.preventDefault();
      return;
    }
    form.setAttribute("aria-busy", "true");
    setTimeout(settle, BUSY_MS);
  });
  // The browser may restore this page from its back-forward cache.
  addEventListener("pageshow", settle);
}
