// Posts the one form of the page. Without this script a person presses its button.
document.forms[0].submit();
