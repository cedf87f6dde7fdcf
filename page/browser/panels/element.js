// Elements of the page in one expression. Text is always text: nothing that a journal holds becomes markup.

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function table(head, rows) {
  return element("table", {}, element("tr", {}, head.map((text) => element("th", {}, text))), rows);
}

// Puts new contents into a parent unless they are what is there: focus, selection and scrolling survive. While
// something in it is pressed, the old contents stay: a button that is replaced between press and release is never clicked.
export function replace(parent, sign, make) {
  if (parent.dataset.sign === sign || parent.matches(":active")) return;
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  parent.dataset.sign = sign;
  parent.replaceChildren(...make().flat().filter((child) => child !== null && child !== undefined));
  if (focused) parent.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}
