// Where journal lines come from: the server's events, or what an exported file carries.

export class Events {
  // `told` is called with ("lines", list), ("begin"), ("end") and ("link", up).
  constructor(lane, told) {
    this.stream = new EventSource(`events/${lane}`);
    this.stream.onmessage = (message) => told("lines", JSON.parse(message.data));
    this.stream.addEventListener("begin", () => told("begin"));
    this.stream.addEventListener("end", () => {
      this.stream.close();
      told("end");
    });
    this.stream.onopen = () => told("link", true);
    this.stream.onerror = () => {
      told("link", false);
      // A browser gives up for good after some answers, such as 503: come back all the same.
      if (this.stream.readyState === EventSource.CLOSED) setTimeout(() => this.again(lane, told), 2000);
    };
  }

  again(lane, told) {
    Object.assign(this, new Events(lane, told));
  }
}

// Lines packed into the page itself: gzip (RFC 1952) of a journal, in base64.
export async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const text = await new Response(stream).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

// A question to the lab's process. Throws its complaint.
export async function ask(op, fields = {}) {
  const answer = await fetch("ask", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ op, ...fields }) });
  const told = await answer.json().catch(() => ({ ok: false, error: `the server answers ${answer.status}` }));
  if (!told.ok) throw new Error(told.error);
  return told.result;
}
