'use strict';
// A script of Django replaces an autocomplete field by a box. This script gives the box the label of the field.
{
    const name = (box) => {
        const field = box.closest('.select2-container')?.previousElementSibling;
        const label = field?.id && document.querySelector(`label[for="${CSS.escape(field.id)}"]`);
        if (!label) return;
        label.id ||= `${field.id}_label`;
        box.setAttribute('aria-labelledby', `${label.id} ${box.getAttribute('aria-labelledby') ?? ''}`.trim());
        box.querySelector('[role=textbox]')?.setAttribute('aria-labelledby', label.id);
    };
    const nameAll = () => document.querySelectorAll('.select2-selection:not([data-named])').forEach((box) => {
        box.dataset.named = 'yes';
        name(box);
    });
    // Boxes are created after the document is read and whenever a form gets another row.
    new MutationObserver(nameAll).observe(document.body, { childList: true, subtree: true });
    nameAll();
}
