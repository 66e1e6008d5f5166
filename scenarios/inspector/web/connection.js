/** The WebSocket to the server: requests with answers, pushes, and reconnecting. */

/** Longest pause between two attempts to reconnect, ms. */
const LONGEST_PAUSE = 5000;

/** An error that the server reported in one line. */
export class ServerError extends Error {}

/** The connection was lost before the answer came. */
export class Gone extends Error {}

/** A connection that comes back by itself. */
export class Connection {
  /**
   * @param {Object} on `hello` when connected, `gone` when lost, `push` with each message that was not asked for
   */
  constructor(on) {
    this.on = on;
    this.waiting = new Map();
    this.last = 0;
    this.pause = 250;
    this.connect();
  }

  connect() {
    const address = new URL("live", location.href.split(/[?#]/)[0]);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(address);
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = () => this.lost();
  }

  receive(message) {
    if (message.push) {
      if (message.push === "hello") this.pause = 250;
      this.on.push(message);
      return;
    }
    const request = this.waiting.get(message.id);
    if (!request) return;
    this.waiting.delete(message.id);
    if (message.error) request.reject(new ServerError(message.error));
    else request.resolve(message);
  }

  lost() {
    for (const request of this.waiting.values()) request.reject(new Gone("the server is gone"));
    this.waiting.clear();
    this.on.gone();
    setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  /** Send a request; resolves with the answer. */
  ask(what, content = {}) {
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) {
        reject(new Gone("the server is gone"));
        return;
      }
      this.last += 1;
      this.waiting.set(this.last, { resolve, reject });
      this.socket.send(JSON.stringify({ id: this.last, do: what, ...content }));
    });
  }
}

/** Return packed numbers as a list or typed array; lists as they are. */
export function unpack(packed) {
  if (!packed) return [];
  for (const [kind, Numbers] of [
    ["f64", Float64Array],
    ["i32", Int32Array],
  ]) {
    if (typeof packed[kind] !== "string") continue;
    return new Numbers(bytesOf(packed[kind]).buffer);
  }
  return packed;
}

/** The bytes that a text in base64 means. */
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place++) bytes[place] = letters.charCodeAt(place);
  return bytes;
}
