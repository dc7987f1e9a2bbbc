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
    document.querySelectorAll('button[data-copy]').forEach((button) => {
        if (!navigator.clipboard) return;
        button.hidden = false;
        button.addEventListener('click', async () => {
            await navigator.clipboard.writeText(button.dataset.copy);
            button.classList.add('copied');
            setTimeout(() => button.classList.remove('copied'), 1500);
        });
    });
}
