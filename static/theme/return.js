'use strict';
// Loads the page again when its reader returns from another tab, such as the tab with the login of a provider.
document.addEventListener('visibilitychange', () => {
    if (!document.hidden) location.replace(location.pathname);
});
