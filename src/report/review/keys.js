// A key presses the button or link that names it; a key that is held down presses once.
addEventListener('keydown', (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const named = [...document.querySelectorAll('[data-key]')].find((one) => one.dataset.key === event.key.toLowerCase());
  if (named) { event.preventDefault(); named.click(); }
});
