'use strict';
// Shows how far a job is without loading the page again: whoever stands on a button or marks text keeps it.
{
    const seconds = (page) => Number(page.querySelector('meta[name=refresh-seconds]')?.content);
    const pause = seconds(document);

    const refresh = async () => {
        const shown = document.getElementById('content-main');
        if (document.hidden || shown.contains(document.activeElement) || !document.getSelection().isCollapsed) return true;
        const answer = await fetch(location.href, { credentials: 'same-origin', cache: 'no-store' });
        if (!answer.ok || answer.redirected) return true;
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const fresh = page.getElementById('content-main');
        if (fresh) shown.replaceWith(document.adoptNode(fresh));
        return seconds(page) > 0;
    };

    const again = async () => {
        // The service may be away for a moment: what is shown stays, and the next turn asks again.
        if (await refresh().catch(() => true)) setTimeout(again, pause * 1000);
    };
    setTimeout(again, pause * 1000);
}
