/* Passkeys: get the options from the server, pass them to the browser, and send its answer with the form. */
'use strict';

(() => {
  const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0));

  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

  const WORDS = {
    NotAllowedError: 'No passkey was used: you canceled, it took too long, or this device has no passkey for this site.',
    InvalidStateError: 'This device already has a passkey of your account.',
    SecurityError: `Your passkeys do not work at ${location.hostname}. Open the admin at its usual address.`,
  };

  const withBytes = (listed) => (listed || []).map((credential) => ({ ...credential, id: toBytes(credential.id) }));

  /* Decodes the server's options: the browser expects bytes. */
  const wanted = (options) => ({
    ...options,
    challenge: toBytes(options.challenge),
    ...(options.user && { user: { ...options.user, id: toBytes(options.user.id) } }),
    ...(options.excludeCredentials && { excludeCredentials: withBytes(options.excludeCredentials) }),
    ...(options.allowCredentials && { allowCredentials: withBytes(options.allowCredentials) }),
  });

  /* Encodes the browser's answer as text. */
  const answer = ({ id, rawId, type, response }) => {
    const said = { clientDataJSON: toText(response.clientDataJSON) };
    for (const name of ['attestationObject', 'authenticatorData', 'signature', 'userHandle']) {
      if (response[name]) said[name] = toText(response[name]);
    }
    if (response.getTransports) said.transports = response.getTransports();
    return JSON.stringify({ id, rawId: toText(rawId), type, response: said, clientExtensionResults: {} });
  };

  const asked = async (form) => {
    const headers = { 'X-CSRFToken': form.elements.csrfmiddlewaretoken.value };
    const reply = await fetch(form.dataset.options, { method: 'POST', headers, credentials: 'same-origin' });
    if (reply.redirected) throw new Error('Your session requires a new proof of identity. Reload this page.');
    if (!reply.ok) throw new Error(reply.status === 429 ? (await reply.json()).error : 'The server refused the request. Reload this page.');
    return wanted(await reply.json());
  };

  const use = async (form) => {
    const state = form.querySelector('.passkey-state');
    const button = form.querySelector('button[type=submit]');
    state.textContent = '';
    button.disabled = true;
    try {
      const publicKey = await asked(form);
      const made = await (form.dataset.passkey === 'create'
        ? navigator.credentials.create({ publicKey })
        : navigator.credentials.get({ publicKey }));
      form.elements.credential.value = answer(made);
      form.submit();
    } catch (error) {
      state.textContent = WORDS[error.name] || error.message;
      button.disabled = false;
      button.focus();
    }
  };

  if (!window.PublicKeyCredential) return;
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    form.hidden = false;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      use(form);
    });
  }
})();
