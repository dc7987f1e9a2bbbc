'use strict';
// Opens the navigation before the page is painted. A script of Django does the same after the page is read, and the content would jump.
document.getElementById('main').classList.toggle('shifted', localStorage.getItem('django.admin.navSidebarIsOpen') !== 'false');
