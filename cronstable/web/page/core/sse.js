// The event-stream format: fields in lines that end with CR, LF or CRLF, events end with a blank one.

export function createEventParser(onEvent) {
  let rest = "";
  let type = "message";
  let data = [];

  function line(text) {
    if (text === "") {
      if (data.length) onEvent(type, data.join("\n"));
      type = "message";
      data = [];
    } else if (text[0] !== ":") {
      const at = text.indexOf(":");
      const field = at < 0 ? text : text.slice(0, at);
      const value = at < 0 ? "" : text.slice(at + 1).replace(/^ /, "");
      if (field === "event") type = value;
      else if (field === "data") data.push(value);
    }
  }

  return (chunk) => {
    rest += chunk;
    // A CR at the very end may be half of a CRLF, so it waits for the next chunk.
    const ready = rest.endsWith("\r") ? rest.slice(0, -1) : rest;
    const lines = ready.split(/\r\n|\r|\n/);
    const tail = lines.pop();
    rest = tail + rest.slice(ready.length);
    for (const text of lines) line(text);
  };
}
