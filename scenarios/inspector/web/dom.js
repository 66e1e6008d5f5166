/** Elements of the page: make them, change only what differs, save files. */

/**
 * Make an element.
 * @param {string} tag
 * @param {Object} [attributes] `class`, `text`, `on` ({event: listener}), `data`, else attributes
 * @param {...(Node|string|null)} children
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A button. */
export function button(text, onClick, attributes = {}) {
  return el("button", { type: "button", text, on: { click: onClick }, ...attributes });
}

/** Set the text of a node if it differs. */
export function setText(node, text) {
  const words = String(text ?? "");
  if (node.textContent !== words) node.textContent = words;
}

/** Set an attribute if it differs; null removes it. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/** Hide or show a node. */
export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

/** Resolve after the browser has painted what changed until now. */
export function painted() {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 250); // hidden pages get no animation frames
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        clearTimeout(timer);
        resolve();
      };
      channel.port2.postMessage(0);
    });
  });
}

/** Call `action` once `delay` ms have passed without another call. */
export function debounced(action, delay) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), delay);
  };
}

/** Call `action` at most every `delay` ms: at once, or with what was given last. */
export function throttled(action, delay) {
  let timer = 0;
  let last = -Infinity;
  let given = [];
  const act = () => {
    timer = 0;
    last = performance.now();
    action(...given);
  };
  return (...latest) => {
    given = latest;
    if (timer) return;
    const rest = delay - (performance.now() - last);
    if (rest <= 0) act();
    else timer = setTimeout(act, rest);
  };
}

/** Give the browser a file to save. */
export function saveFile(name, mime, base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type: mime }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Move the focus with the arrow keys among the children of a container that match. */
export function rove(container, selector, vertical = false) {
  const items = () => [...container.querySelectorAll(selector)].filter((item) => !item.disabled && !item.hidden);
  container.addEventListener("keydown", (event) => {
    const [back, on] = vertical ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const all = items();
    const place = all.indexOf(event.target.closest(selector));
    if (place < 0) return;
    let next = -1;
    if (event.key === on) next = (place + 1) % all.length;
    else if (event.key === back) next = (place - 1 + all.length) % all.length;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = all.length - 1;
    if (next < 0) return;
    event.preventDefault();
    event.stopPropagation();
    all[next].focus();
    if (all[next].getAttribute("role") === "tab") all[next].click();
  });
}
