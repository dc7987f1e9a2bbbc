'use strict';
// A choice with suggestions shows a box of its own in place of its field: the box gets the field's label too.
addEventListener('load', () => {
    for (const field of document.querySelectorAll('select.admin-autocomplete')) {
        const label = document.querySelector(`label[for="${CSS.escape(field.id)}"]`);
        const box = field.nextElementSibling?.querySelector('[role=combobox]');
        if (label && box) {
            label.id ||= `${field.id}_label`;
            box.setAttribute('aria-labelledby', `${label.id} ${box.getAttribute('aria-labelledby') ?? ''}`.trim());
        }
    }
});
