// Keys of people (WebAuthn): asks the browser for what the form says, and sends its answer with the form.
"use strict";

(() => {
  const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const withBytes = (listed) => (listed || []).map((credential) => ({ ...credential, id: toBytes(credential.id) }));

  // What the server says, with bytes where the browser wants them.
  const wanted = (options) => ({
    ...options,
    challenge: toBytes(options.challenge),
    ...(options.user && { user: { ...options.user, id: toBytes(options.user.id) } }),
    ...(options.excludeCredentials && { excludeCredentials: withBytes(options.excludeCredentials) }),
    ...(options.allowCredentials && { allowCredentials: withBytes(options.allowCredentials) }),
  });

  // What the browser says, as text.
  const answer = ({ id, rawId, type, response }) => {
    const said = { clientDataJSON: toText(response.clientDataJSON) };
    for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (response[name]) said[name] = toText(response[name]);
    }
    if (response.getTransports) said.transports = response.getTransports();
    return JSON.stringify({ id, rawId: toText(rawId), type, response: said, clientExtensionResults: {} });
  };

  // While the browser offers passkeys at the field of the name.
  let offered = null;

  const offer = async (form) => {
    const isAble = await window.PublicKeyCredential.isConditionalMediationAvailable?.();
    if (!isAble) return;
    offered = new AbortController();
    try {
      const publicKey = wanted(JSON.parse(form.dataset.options));
      const found = await navigator.credentials.get({ publicKey, mediation: "conditional", signal: offered.signal });
      form.elements.credential.value = answer(found);
      form.submit();
    } catch {
      // The person went another way, or chose none. Nothing was asked for, so nothing is said.
    }
  };

  const use = async (form) => {
    const state = form.querySelector("[role=alert]");
    const button = form.querySelector("button[type=submit]");
    state.textContent = "";
    button.disabled = true;
    offered?.abort();
    try {
      const publicKey = wanted(JSON.parse(form.dataset.options));
      const act = form.dataset.key === "create" ? "create" : "get";
      form.elements.credential.value = answer(await navigator.credentials[act]({ publicKey }));
      form.submit();
    } catch (error) {
      state.textContent = error.name === "InvalidStateError" ? form.dataset.present : form.dataset.cancelled;
      button.disabled = false;
      button.focus();
      if ("conditional" in form.dataset) offer(form);
    }
  };

  if (!window.PublicKeyCredential) return;
  for (const form of document.querySelectorAll("form[data-key]")) {
    form.querySelector("[role=alert]").textContent = "";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      use(form);
    });
    if ("button" in form.dataset) form.hidden = false;
    if ("conditional" in form.dataset) offer(form);
  }

  // The server offers to make a passkey only where the browser says that it can.
  const fields = document.querySelectorAll("input[data-can-make]");
  if (fields.length) {
    window.PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable().then((can) => {
      for (const field of fields) field.value = can ? "1" : "";
    });
  }
})();
