'use strict';
// Pages contain all times in UTC. This script converts them to the time zone of the reader, with UTC in a tooltip, unless the reader has chosen UTC.
{
    const KEY = 'console.times', MOMENT = /^\s*(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}(?::\d{2})?)(?: UTC)?\s*$/;
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const footnote = document.querySelector('.footnote');
    const isLocal = () => localStorage.getItem(KEY) !== 'utc' && zone !== 'UTC';
    const two = (number) => String(number).padStart(2, '0');
    const local = (at, hasSeconds) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`
        + (hasSeconds ? `:${two(at.getSeconds())}` : '');
    const show = (node) => {
        const found = MOMENT.exec(node.data);
        if (!found || node.parentElement.closest('input, textarea, pre, code, time[data-shown], script')) return;
        const time = document.createElement('time');
        time.dateTime = `${found[1]}T${found[2]}Z`;
        time.dataset.shown = 'local';
        time.title = `${found[1]} ${found[2]} UTC`;
        time.textContent = local(new Date(time.dateTime), found[2].length > 5);
        node.replaceWith(time);
    };
    // A `time[data-clock]` shows only the time of day: hours and minutes, sometimes seconds and milliseconds.
    const showClock = (time) => {
        const at = new Date(time.dateTime), parts = time.textContent.replace('UTC', '').trim().length;
        const utc = at.toISOString(), hours = local(at, true).slice(11), rest = String(at.getMilliseconds()).padStart(3, '0');
        time.dataset.shown = 'local';
        time.title = `${utc.slice(0, 10)} ${utc.slice(11, 11 + parts)} UTC`;
        time.textContent = `${hours}.${rest}`.slice(0, parts);
    };
    // Remove "(UTC)" from headings, but not from labels of fields: times are entered in UTC.
    const isLabel = (node) => { const label = node.parentElement?.closest('thead, dt, label'); return Boolean(label) && !label.control; };
    const rename = (node) => { node.data = node.data.replace(/\s*\(UTC\)/, ''); };
    const visit = (root) => {
        const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
        while (nodes.nextNode()) found.push(nodes.currentNode);
        found.forEach((node) => { if (isLabel(node)) rename(node); else show(node); });
        root.querySelectorAll('[data-label*="(UTC)"]').forEach((cell) => { cell.dataset.label = cell.dataset.label.replace(/\s*\(UTC\)/, ''); });
        root.querySelectorAll('time[data-clock]:not([data-shown])').forEach(showClock);
    };
    if (footnote && zone !== 'UTC') {
        const button = document.createElement('button');
        button.type = 'button';
        button.className = 'link';
        button.textContent = isLocal() ? 'Show UTC' : `Show ${zone}`;
        button.addEventListener('click', () => {
            localStorage.setItem(KEY, isLocal() ? 'utc' : 'local');
            location.reload();
        });
        footnote.textContent = isLocal() ? `All times are in ${zone}. ` : 'All times are in UTC. ';
        footnote.append(button);
    }
    const content = document.getElementById('content');
    if (content && isLocal()) {
        visit(content);
        // Times are entered in UTC.
        content.querySelectorAll('input[type=datetime-local]').forEach((input) => {
            const label = input.labels?.[0];
            if (label && !label.textContent.includes('UTC')) label.append(' (UTC)');
        });
        new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => {
            if (node.nodeType === Node.ELEMENT_NODE && !node.dataset.shown) visit(node);
        }))).observe(content, { childList: true, subtree: true });
    }
}
