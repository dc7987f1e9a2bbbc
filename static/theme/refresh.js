'use strict';
// Shows the progress of a job without reloading the page, so that focus and selected text stay.
{
    const seconds = (page) => Number(page.querySelector('meta[name=refresh-seconds]')?.content);
    const pause = seconds(document);

    const refresh = async () => {
        const shown = document.getElementById('content');
        if (document.hidden || shown.contains(document.activeElement) || !document.getSelection().isCollapsed) return true;
        const answer = await fetch(location.href, { credentials: 'same-origin', cache: 'no-store' });
        if (!answer.ok || answer.redirected) return true;
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        const fresh = page.getElementById('content');
        if (fresh) shown.replaceChildren(...document.adoptNode(fresh).childNodes);
        return seconds(page) > 0;
    };

    const again = async () => {
        // If the service is unavailable, keep the current progress and try again at the next interval.
        if (await refresh().catch(() => true)) setTimeout(again, pause * 1000);
    };
    setTimeout(again, pause * 1000);
}
