'use strict';
// Each row of inputs gets a button that removes the row, and each group of rows gets a button that adds a row. Without this script, a group
// has three empty rows. The script is loaded in the head, so it waits for the document.
document.addEventListener('DOMContentLoaded', () => document.querySelectorAll('.pairs').forEach((pairs) => {
    const rows = () => [...pairs.querySelectorAll('.pair:not(.pair-head)')];
    const shown = () => rows().filter((row) => !row.hidden);
    const inputs = (row) => [...row.querySelectorAll('input, textarea, select')];
    const isSelect = (input) => input.tagName === 'SELECT';
    const isEmpty = (row) => inputs(row).every((input) => (isSelect(input) ? input.selectedIndex === 0 : !input.value));
    const clear = (input) => { if (isSelect(input)) input.selectedIndex = 0; else input.value = ''; };
    const most = Number(pairs.dataset.most) || Infinity;
    const sprite = document.querySelector('use[href*="icons.svg"]')?.getAttribute('href').split('#')[0];
    const button = (label, name) => {
        const made = document.createElement('button');
        made.type = 'button';
        made.className = name;
        made.textContent = label;
        return made;
    };
    const add = button('Add row', 'pair-add');
    const check = () => { add.hidden = shown().length >= most; };
    const give = (row) => {
        if (row.classList.contains('pair-stored')) return;
        const remove = button(sprite ? '' : 'Remove', 'pair-remove-row');
        if (sprite) remove.innerHTML = `<svg class="icon" width="16" height="16" aria-hidden="true"><use href="${sprite}#close"></use></svg>`;
        remove.setAttribute('aria-label', `Remove row ${rows().indexOf(row) + 1}`);
        remove.addEventListener('click', () => {
            const left = shown(), next = left[left.indexOf(row) + 1];
            inputs(row).forEach(clear);
            // The form reads row 0 to detect whether the page had rows, so a removed row stays in the form, hidden and empty.
            row.hidden = true;
            row.dataset.removed = '';
            check();
            (next ? inputs(next)[0] : add).focus();
        });
        row.append(remove);
    };
    const numbered = (row, number) => {
        inputs(row).forEach((input) => {
            clear(input);
            input.name = input.name.replace(/\d+$/, number);
            if (input.id) input.id = input.id.replace(/\d+$/, number);
            input.setAttribute('aria-label', input.getAttribute('aria-label').replace(/\d+$/, number + 1));
        });
        return row;
    };
    const empty = rows().filter((row) => isEmpty(row) && !row.classList.contains('pair-stored'));
    const pattern = rows().at(-1)?.cloneNode(true);
    if (!pattern || pattern.classList.contains('pair-stored')) return;
    // Show only one empty row, because the button can add more.
    empty.slice(1).forEach((row) => { row.hidden = true; });
    rows().forEach(give);
    add.addEventListener('click', () => {
        // The form orders rows by their numbers. A removed row keeps its number, so do not use a removed row as the new last row.
        const row = rows().find((each) => each.hidden && !('removed' in each.dataset)) ?? numbered(pattern.cloneNode(true), rows().length);
        const isNew = !row.isConnected;
        row.hidden = false;
        // Show the added row below all other rows.
        add.before(row);
        if (isNew) give(row);
        check();
        inputs(row)[0].focus();
    });
    pairs.classList.add('has-buttons');
    pairs.append(add);
    check();
}));
