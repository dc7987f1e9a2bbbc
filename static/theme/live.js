/* Shows events as they arrive. Data of the log is inserted as text, never as markup. */
"use strict";

(() => {
  const MOST_SHOWN = 500;
  const LONGEST_SILENCE_MS = 45000;
  const LONGEST_PAUSE_MS = 30000;
  const NEAR_THE_END_PX = 24;
  const MOST_NAMES = 2000;
  const NAMES_EVERY_MS = 300;
  const MOST_FAILURES = 5;

  const page = document.getElementById("live");
  if (!page) return;
  const [type, types, entity, pause, clear, aloud, state, count, scroll, empty, list, newest] = [
    "type", "types", "entity", "pause", "clear", "aloud", "state", "count", "scroll", "empty", "list", "newest",
  ].map((name) => document.getElementById(`live-${name}`));

  const NOTHING_YET = empty.textContent;
  let lastId = "";
  let isPaused = false;
  let follows = true;
  let unseen = 0;
  let waiting = [];
  let connection = new AbortController();
  const eventOf = new WeakMap();
  // Hidden entries that the filter may select after the names of their entities arrive.
  const undecided = new WeakSet();

  // The filter

  function chosenTypes() {
    return [...types.querySelectorAll("input:checked")].map((box) => box.value);
  }

  function tellTypes() {
    const chosen = chosenTypes();
    type.textContent = chosen.length === 0 ? "All types" : chosen.length === 1 ? chosen[0] : `${chosen.length} types`;
  }

  const PARTS = ["organization", "group", "user", "member", "role", "connection"];

  function kindOf(name, part) {
    if (name !== "member") return name;
    return part.member_type === "user" ? "user" : "group";
  }

  /* Returns the entities that the event is about, as <kind>:<id>: the object, or the parts of the object. */
  function subjectsOf(event) {
    const object = (event.data || {}).object || {};
    const kind = String(event.type).split(".")[0];
    if (object.user_id || object.id) return [`${kind}:${object.user_id || object.id}`];
    const parts = PARTS.map((name) => [name, object[name]]).filter(([, part]) => part && (part.user_id || part.id));
    const roots = parts.map(([name, part]) => `${kindOf(name, part)}:${part.user_id || part.id}`);
    return roots.sort((one, other) => other.startsWith(`${kind}:`) - one.startsWith(`${kind}:`));
  }

  /* Returns all entities in the event, first the entity that the event is about. */
  function rootsOf(event) {
    const data = event.data || {};
    const object = data.object || {};
    const owners = [object, ...PARTS.map((name) => object[name])].flatMap((part) => {
      const { organization_id: organization, connection_id: connection } = part || {};
      return [organization && `organization:${organization}`, connection && `connection:${connection}`];
    });
    const source = ((data.context || {}).connection || {}).id;
    return [...new Set([...subjectsOf(event), ...owners, source && `connection:${source}`].filter(Boolean))];
  }

  function isAbout(event, text) {
    const object = (event.data || {}).object || {};
    const roots = rootsOf(event);
    const texts = [...roots, ...roots.map((root) => names.get(root)?.text), object.email, object.name, object.username].filter(Boolean);
    return texts.some((name) => String(name).toLowerCase().includes(text));
  }

  function isWanted(message) {
    const chosen = chosenTypes();
    const text = entity.value.trim().toLowerCase();
    return (!chosen.length || chosen.includes(message.type)) && (!text || isAbout(message.event || {}, text));
  }

  function isUndecided(message) {
    const chosen = chosenTypes();
    return (!chosen.length || chosen.includes(message.type)) && rootsOf(message.event || {}).some((root) => !names.has(root));
  }

  function filter() {
    for (const entry of list.children) entry.hidden = !isWanted(eventOf.get(entry));
    waiting = waiting.filter((message) => isWanted(message) || isUndecided(message));
    trim();
    tell();
  }

  // The names of the entities

  const names = new Map();
  const unnamed = new Set();
  let isAsking = false;

  function idOf(root) {
    return root.slice(root.indexOf(":") + 1);
  }

  /* Requests the missing names of entities. Stops after `MOST_FAILURES` consecutive failures; the next event starts again. */
  async function askNames(roots) {
    roots.filter((root) => !names.has(root)).forEach((root) => unnamed.add(root));
    removeOldest(unnamed);
    if (isAsking) return;
    isAsking = true;
    for (let failures = 0; unnamed.size && failures < MOST_FAILURES; ) {
      const some = [...unnamed].slice(0, Number(page.dataset.namesAtOnce));
      some.forEach((root) => unnamed.delete(root));
      const found = await namesOf(some);
      failures = found ? 0 : failures + 1;
      if (found) takeNames(some, found);
      else some.forEach((root) => unnamed.add(root));
      await new Promise((resolve) => setTimeout(resolve, NAMES_EVERY_MS * 2 ** failures));
    }
    isAsking = false;
  }

  /* Requests a known name again. The old name is shown until the answer arrives. */
  function askAgain(root) {
    if (names.has(root)) unnamed.add(root);
    askNames([]);
  }

  async function namesOf(roots) {
    const query = new URLSearchParams([["tenant", page.dataset.tenant], ...roots.map((root) => ["root", root])]);
    try {
      const answer = await fetch(`${page.dataset.names}?${query}`, { credentials: "same-origin", cache: "no-store" });
      return answer.ok ? (await answer.json()).entities : null;
    } catch {
      return null;
    }
  }

  function takeNames(roots, found) {
    for (const root of roots) names.set(root, found[root] || { text: "", url: "" });
    removeOldest(names);
    showNames();
  }

  function removeOldest(kept) {
    for (const root of [...kept.keys()].slice(0, Math.max(0, kept.size - MOST_NAMES))) kept.delete(root);
  }

  function showNames() {
    const height = scroll.scrollHeight;
    let revealed = 0;
    list.querySelectorAll("[data-root]").forEach(showName);
    for (const entry of [...list.children].filter((one) => undecided.has(one) && !isUndecided(eventOf.get(one)))) {
      undecided.delete(entry);
      if (isWanted(eventOf.get(entry))) {
        entry.hidden = false;
        revealed += 1;
      } else entry.remove();
    }
    waiting = waiting.filter((message) => isWanted(message) || isUndecided(message));
    trim();
    reveal(revealed, scroll.scrollHeight !== height);
  }

  /* Shows the name of an entity with a link to its page; without a page, the fallback text or the id. */
  function showName(node) {
    const known = names.get(node.dataset.root) || {};
    if (!known.url) {
      node.textContent = node.dataset.fallback || idOf(node.dataset.root);
      if (known.is_deleted) node.append(" ", contentOf("span", "badge badge-quiet", "Deleted"));
      return;
    }
    const link = contentOf("a", "", known.text);
    link.href = known.url;
    node.replaceChildren(link);
  }

  function nameNode(root, fallback = "") {
    const node = contentOf("span", "", "");
    node.dataset.root = root;
    node.dataset.fallback = fallback;
    showName(node);
    return node;
  }

  // The list

  function contentOf(name, className, text) {
    const element = document.createElement(name);
    element.className = className;
    element.textContent = text;
    return element;
  }

  /* Until the name of a user arrives, the email address of the event is shown. */
  function subjectsNode(event) {
    const object = (event.data || {}).object || {};
    const node = contentOf("span", "live-entity", "");
    const roots = subjectsOf(event);
    roots.forEach((root, index) => {
      if (index) node.append(" · ");
      node.append(nameNode(root, roots.length === 1 && object.email ? `${object.email} · ${idOf(root)}` : ""));
    });
    return node;
  }

  /* Returns one line for each entity of the event: kind, name, and the id with a button that copies it. */
  function entitiesNode(event) {
    const lines = contentOf("div", "live-entities", "");
    for (const root of rootsOf(event)) {
      const line = contentOf("div", "", "");
      const id = document.getElementById("live-id").content.firstElementChild.cloneNode(true);
      id.querySelector("code").textContent = idOf(root);
      const copy = id.querySelector("button");
      copy.dataset.copy = idOf(root);
      copy.setAttribute("aria-label", `Copy the identifier ${idOf(root)}`);
      const kind = root.slice(0, root.indexOf(":"));
      line.append(contentOf("span", "live-kind", kind.charAt(0).toUpperCase() + kind.slice(1)), nameNode(root, " "), id);
      lines.append(line);
    }
    return lines;
  }

  /* Splits the name of an event type, so that it wraps only after a dot. Uses no lookbehind, which older browsers lack. */
  function wrapping(name) {
    return name.match(/[^.]*\.?/g).filter(Boolean).flatMap((part, index) => (index ? [document.createElement("wbr"), part] : [part]));
  }

  function shownTime(value) {
    const moment = new Date(value);
    return Number.isNaN(moment.getTime()) ? String(value) : moment.toISOString().slice(11, 23);
  }

  function entryOf(message) {
    const event = message.event || {};
    const entry = document.createElement("li");
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    const time = contentOf("time", "", shownTime(event.time));
    time.dateTime = String(event.time);
    time.title = `${String(event.time).slice(0, 10)} ${time.textContent} UTC`;
    // times.js converts each time with `data-clock` to the time zone of the user.
    if (!Number.isNaN(Date.parse(event.time))) time.dataset.clock = "";
    const type = contentOf("span", "live-type", "");
    type.append(...wrapping(String(event.type)));
    summary.append(time, type);
    details.append(summary);
    details.addEventListener("toggle", () => fill(details, event), { once: true });
    // Do not scroll while the user reads an expanded entry: expanding it causes no scroll event.
    details.addEventListener("toggle", () => followIf(!details.open && isAtTheEnd()));
    // The links are beside the summary: a summary works as a button, and a button must not contain links.
    entry.append(details, subjectsNode(event));
    eventOf.set(entry, message);
    return entry;
  }

  function fill(details, event) {
    const more = contentOf("div", "live-more", "");
    const json = contentOf("pre", "json", JSON.stringify(event, null, 2));
    json.tabIndex = 0;
    const link = contentOf("a", "", "Open in the event log");
    link.href = `${page.dataset.log}?entity=${encodeURIComponent(event.id)}`;
    const line = contentOf("p", "live-links", "");
    line.append(link);
    const [root] = rootsOf(event);
    if (root) {
      const history = contentOf("a", "", `All events of ${names.get(root)?.url ? names.get(root).text : root}`);
      history.href = `${page.dataset.log}?entity=${encodeURIComponent(root)}`;
      const only = contentOf("button", "button quiet", "Show only this entity");
      only.type = "button";
      only.addEventListener("click", () => {
        entity.value = root;
        filter();
      });
      line.append(history, only);
    }
    more.append(entitiesNode(event), line, json);
    details.append(more);
  }

  function show(messages) {
    if (!messages.length) return;
    for (const message of messages) {
      const entry = entryOf(message);
      if (!isWanted(message)) {
        entry.hidden = true;
        undecided.add(entry);
      }
      list.append(entry);
    }
    trim();
    reveal(messages.filter(isWanted).length);
  }

  /* Scrolls to the newest entry if the list follows the stream and has grown, by entries or by names.
     Otherwise shows the number of new entries below the visible part. */
  function reveal(number, hasGrown = number > 0) {
    if (follows && hasGrown) scroll.scrollTop = scroll.scrollHeight;
    else if (!follows) unseen += number;
    tell();
  }

  /* Removes the oldest entries. Keeps at most `MOST_SHOWN` visible and as many hidden entries: these may be shown later. */
  function trim() {
    for (const isHidden of [true, false]) {
      const entries = [...list.children].filter((entry) => entry.hidden === isHidden);
      entries.slice(0, Math.max(0, entries.length - MOST_SHOWN)).forEach((entry) => entry.remove());
    }
  }

  function isAtTheEnd() {
    return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_THE_END_PX;
  }

  function followIf(isAtEnd) {
    follows = isAtEnd;
    if (follows) unseen = 0;
    tell();
  }

  /* Returns why no event is shown. The list contains only events of chosen types. */
  function nothingShown() {
    if (list.children.length || entity.value.trim()) return empty.dataset.filtered;
    return chosenTypes().length ? empty.dataset.types : NOTHING_YET;
  }

  function tell() {
    const shown = list.querySelectorAll(":scope > li:not([hidden])").length;
    empty.hidden = shown > 0;
    empty.textContent = nothingShown();
    const parts = [`${shown} event${shown === 1 ? "" : "s"} shown`];
    if (shown === MOST_SHOWN) parts[0] = `the newest ${shown} events shown`;
    if (isPaused) parts.push(`${waiting.length} waiting`);
    count.textContent = parts.join(", ");
    newest.hidden = follows;
    newest.textContent = unseen ? `Go to the newest (${unseen} more)` : "Go to the newest";
    pause.textContent = isPaused ? `Continue (${waiting.length})` : "Pause";
  }

  // The stream

  function take(message) {
    const event = message.event || {};
    // The event can change the name of its entity, or create or delete the entity.
    if (/^[a-z]+\.(created|updated|deleted)$/.test(message.type)) askAgain(subjectsOf(event)[0]);
    const isKept = isWanted(message) || isUndecided(message);
    if (!isKept) return;
    askNames(rootsOf(event));
    if (!isPaused) {
      show([message]);
      return;
    }
    waiting.push(message);
    if (waiting.length > MOST_SHOWN) waiting.shift();
    tell();
  }

  function takeBlock(block) {
    let name = "";
    let data = "";
    let id = null;
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = value;
      else if (field === "data") data = value;
      else if (field === "id") id = value;
    }
    if (name === "error") {
      const reason = JSON.parse(data).error;
      if (reason.code === "cursor_expired") lastId = "";
      state.textContent = `Ended: ${reason.message}`;
    } else if (name && name !== "offset-only") take(JSON.parse(data));
    // Store the cursor after the event is shown: an event that was not shown is requested again.
    if (id !== null) lastId = id;
  }

  async function read(body, stop) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let silence = setTimeout(stop, LONGEST_SILENCE_MS);
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(stop, LONGEST_SILENCE_MS);
        const blocks = (text + value).split("\n\n");
        text = blocks.pop();
        blocks.forEach(takeBlock);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  async function refusalOf(answer) {
    try {
      return (await answer.json()).message;
    } catch {
      return `The service answered ${answer.status}.`;
    }
  }

  /* Opens the stream once. Returns "again" at its end, "later" after a refusal, "never" if no attempt can succeed. */
  async function followOnce() {
    const mine = (connection = new AbortController());
    const asked = new URLSearchParams(chosenTypes().map((name) => ["event_type", name])).toString();
    const query = asked && `?${asked}`;
    const headers = lastId ? { "Last-Event-ID": lastId } : {};
    const answer = await fetch(page.dataset.stream + query, { headers, signal: mine.signal, credentials: "same-origin", cache: "no-store" });
    if (answer.ok) {
      state.textContent = "Connected.";
      await read(answer.body, () => mine.abort());
      return "again";
    }
    state.textContent = `Not connected: ${await refusalOf(answer)}`;
    if (answer.status === 410 || answer.status === 400) lastId = "";
    return [401, 404].includes(answer.status) ? "never" : "later";
  }

  async function follow() {
    let wait = 1000;
    for (;;) {
      let outcome = "later";
      try {
        outcome = await followOnce();
      } catch {
        if (connection.signal.reason === "filter") outcome = "again";
        else state.textContent = "Connection lost. Connecting again.";
      }
      if (outcome === "never") return;
      wait = outcome === "again" ? 1000 : Math.min(wait * 2, LONGEST_PAUSE_MS);
      const isAsked = connection.signal.reason === "filter";
      if (!isAsked) await new Promise((resolve) => setTimeout(resolve, outcome === "again" ? 250 : wait * (0.5 + Math.random() / 2)));
    }
  }

  // Controls

  types.addEventListener("change", () => {
    tellTypes();
    filter();
    connection.abort("filter");
  });
  entity.addEventListener("input", filter);
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) show(waiting.splice(0));
    tell();
  });
  clear.addEventListener("click", () => {
    list.replaceChildren();
    waiting = [];
    unseen = 0;
    follows = true;
    tell();
  });
  aloud.addEventListener("change", () => list.setAttribute("aria-live", aloud.checked ? "polite" : "off"));
  scroll.addEventListener("scroll", () => followIf(isAtTheEnd()));
  newest.addEventListener("click", () => {
    scroll.scrollTop = scroll.scrollHeight;
    scroll.focus();
  });
  addEventListener("pagehide", () => connection.abort());
  addEventListener("pageshow", (shown) => shown.persisted && location.reload());

  page.hidden = false;
  tellTypes();
  tell();
  follow();
})();
