// Security keys and passkeys (WebAuthn): passes the options of the form to the browser and sends the browser's answer with the form.
"use strict";

(() => {
  const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const withBytes = (listed) => (listed || []).map((credential) => ({ ...credential, id: toBytes(credential.id) }));

  // Decodes the server's options: the browser expects bytes.
  const wanted = (options) => ({
    ...options,
    challenge: toBytes(options.challenge),
    ...(options.user && { user: { ...options.user, id: toBytes(options.user.id) } }),
    ...(options.excludeCredentials && { excludeCredentials: withBytes(options.excludeCredentials) }),
    ...(options.allowCredentials && { allowCredentials: withBytes(options.allowCredentials) }),
  });

  // Encodes the browser's answer as text.
  const answer = ({ id, rawId, type, response }) => {
    const said = { clientDataJSON: toText(response.clientDataJSON) };
    for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (response[name]) said[name] = toText(response[name]);
    }
    if (response.getTransports) said.transports = response.getTransports();
    return JSON.stringify({ id, rawId: toText(rawId), type, response: said, clientExtensionResults: {} });
  };

  // Ends the browser's offer of passkeys at the user name field (conditional UI). Null before the first offer.
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
      // The user chose no passkey, or continued with another method. The page shows no error, because the user did not request the offer.
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

  // The server offers a passkey only if the browser reports support for it.
  const fields = document.querySelectorAll("input[data-can-make]");
  if (fields.length) {
    window.PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable().then((can) => {
      for (const field of fields) field.value = can ? "1" : "";
    });
  }
})();
