// @ts-check

/**
 * Create an element: `make("p", {class: "x"}, "text", child)`. An attribute `onclick` adds a listener.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name @param {Record<string, any>} [attributes] @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * Copy a text to the clipboard.
 * @param {string} text @param {HTMLElement} root
 */
export async function copyText(text, root) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // pages opened from a file may not use the clipboard API
    const area = make("textarea", { class: "k-offscreen" });
    area.value = text;
    root.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/**
 * Create a table with a caption, the headings of its columns, and rows of cells.
 * @param {string} caption @param {string[]} headings @param {HTMLElement[]} rows @param {Record<string, any>} [attributes]
 */
export function table(caption, headings, rows, attributes = {}) {
  const columns = headings.map((text) => make("th", { scope: "col" }, text));
  const [head, body] = [make("thead", {}, make("tr", {}, ...columns)), make("tbody", {}, ...rows)];
  return make("table", attributes, make("caption", {}, caption), head, body);
}
