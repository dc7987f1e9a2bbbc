'use strict';
// Opens the navigation before the page is painted. Django's own script opens it only after the page is parsed, so the content would jump.
document.getElementById('main').classList.toggle('shifted', localStorage.getItem('django.admin.navSidebarIsOpen') !== 'false');
