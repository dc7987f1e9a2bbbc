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

// A second click would send the form twice. The page may stay open after the form was sent, because the response can open an application
// outside the browser. So the user can send the form again after a few seconds.
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
