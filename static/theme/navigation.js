'use strict';
// Opens the groups under "More" while the user filters the navigation.
{
    const groups = [...document.querySelectorAll('.nav-more')].map((group) => [group, group.open]);
    const search = document.getElementById('nav-filter');
    const show = () => groups.forEach(([group, wasOpen]) => { group.open = Boolean(search.value) || wasOpen; });
    if (search) {
        search.addEventListener('input', show);
        if (search.value || sessionStorage.getItem('django.admin.navSidebarFilterValue')) {
            groups.forEach(([group]) => { group.open = true; });
        }
    }
}
