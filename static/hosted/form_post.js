// Submits the form of the page. Without JavaScript, the user presses the button of the form.
document.forms[0].submit();
