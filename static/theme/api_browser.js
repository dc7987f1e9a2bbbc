'use strict';
// Swagger UI follows a class of the root. The choice is that of the admin, or of the browser.
{
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    const follow = () => {
        const chosen = localStorage.getItem('theme') || 'auto';
        document.documentElement.classList.toggle('dark-mode', chosen === 'dark' || (chosen === 'auto' && system.matches));
    };
    system.addEventListener('change', follow);
    follow();
}
