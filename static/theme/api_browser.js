'use strict';
// Swagger UI selects light or dark mode by a class of the root element. The mode is the user's choice in the admin, or the browser's preference if there is no choice.
{
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    const follow = () => {
        const chosen = localStorage.getItem('theme') || 'auto';
        document.documentElement.classList.toggle('dark-mode', chosen === 'dark' || (chosen === 'auto' && system.matches));
    };
    system.addEventListener('change', follow);
    follow();
}
