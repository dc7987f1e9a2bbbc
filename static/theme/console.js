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
        // One listener for all buttons: a page that refreshes itself gets new ones.
        document.addEventListener('click', async (event) => {
            const button = event.target.closest('button[data-copy], button[data-copy-of]');
            if (!button) return;
            const { copy, copyOf } = button.dataset;
            await navigator.clipboard.writeText(copy ?? document.getElementById(copyOf).textContent.trim());
            button.classList.add('copied');
            setTimeout(() => button.classList.remove('copied'), 1500);
        });
    }
}
