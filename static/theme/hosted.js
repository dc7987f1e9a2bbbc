// Lets people see the password that they type, and marks a form that is on its way. Every page works without this file.
for (const button of document.querySelectorAll("button.reveal")) {
  const input = document.getElementById(button.getAttribute("aria-controls"));
  const show = (isShown) => {
    input.type = isShown ? "text" : "password";
    button.setAttribute("aria-pressed", String(isShown));
  };
  button.hidden = false;
  button.addEventListener("click", () => show(input.type === "password"));
  // A browser remembers what was sent from a field of text, and never a password.
  input.form.addEventListener("submit", () => show(false));
}

// A second press would send the form twice. The mark goes after a while, since the answer may lead to an application outside the browser.
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
  // The browser keeps the page as it was for the way back.
  addEventListener("pageshow", settle);
}
