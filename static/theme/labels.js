'use strict';
// A choice with suggestions shows a box of its own in place of its field: the box gets the field's label too.
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
    // The boxes are made once the document is read, and with each row that a form gets.
    new MutationObserver(nameAll).observe(document.body, { childList: true, subtree: true });
    nameAll();
}
