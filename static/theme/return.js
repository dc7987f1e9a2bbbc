'use strict';
// Loads the page again when its reader returns from another tab, such as the tab with the login of a provider. A page with entered values is not loaded again.
let hasEntered = false;
document.addEventListener('input', () => { hasEntered = true; });
document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !hasEntered) location.replace(location.pathname);
});
