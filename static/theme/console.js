'use strict';
// Keyboard shortcuts and copy buttons. All pages also work without this script.
{
    const search = document.querySelector('.global-search input');
    const isTyping = (target) => target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
    document.addEventListener('keydown', (event) => {
        if (event.key === '/' && search && !isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            search.focus();
            search.select();
        }
        const open = event.key === 'Escape' && document.querySelector('.menu[open]');
        if (open) {
            open.open = false;
            open.querySelector('summary').focus();
        }
    });
    document.addEventListener('click', (event) => {
        document.querySelectorAll('.menu[open]').forEach((menu) => { menu.open = menu.contains(event.target); });
    });
    if (navigator.clipboard) {
        document.documentElement.classList.add('has-clipboard');
        // Add the element before its first text: screen readers announce only changes of elements on the page.
        const told = document.createElement('div');
        told.className = 'visually-hidden';
        told.setAttribute('role', 'status');
        document.body.append(told);
        const labels = new WeakMap();
        const tell = (button, text, isDone) => {
            // A button with an icon has no text, so only buttons with a text show the result as text.
            if (!labels.has(button)) labels.set(button, button.hasAttribute('aria-label') ? '' : button.textContent);
            const label = labels.get(button);
            if (label) button.textContent = text;
            button.classList.toggle('copied', isDone);
            told.textContent = text;
            setTimeout(() => {
                if (label) button.textContent = label;
                button.classList.remove('copied');
                told.textContent = '';
            }, 1500);
        };
        // One listener on the document serves all buttons, because a page that refreshes itself replaces its buttons.
        document.addEventListener('click', async (event) => {
            const button = event.target.closest('button[data-copy], button[data-copy-of]');
            if (!button) return;
            const { copy, copyOf } = button.dataset;
            try {
                await navigator.clipboard.writeText(copy ?? document.getElementById(copyOf).textContent.trim());
                tell(button, 'Copied', true);
            } catch {
                // The browser or its user can refuse the clipboard.
                tell(button, 'Not copied: the browser refused', false);
            }
        });
    }
}
