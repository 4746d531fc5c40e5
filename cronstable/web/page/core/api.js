// The only place that talks to the daemon: the token, conditional requests, errors, event streams.

import { createEventParser } from "./sse.js";

const TOKEN_KEY = "cronstable.token";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// segment("a/b") is safe inside a path: the daemon splits first and decodes afterwards.
export function segment(name) {
  return encodeURIComponent(name).replace(
    /[!'()*.~]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export function createApi(onUnauthorized, onInstance) {
  const tags = new Map();
  let token = readToken();

  // Milliseconds to add to this machine's clock to get the daemon's.
  let skew = 0;

  function headers(extra) {
    return token ? { Authorization: `Bearer ${token}`, ...extra } : { ...extra };
  }

  function noteAnswer(response, sentAt) {
    const instance = response.headers.get("Cronstable-Instance");
    if (instance) onInstance(instance);
    const date = Date.parse(response.headers.get("Date") || "");
    if (!Number.isNaN(date)) {
      // The header has whole seconds: its middle is the best guess.
      const offset = date + 500 - (sentAt + Date.now()) / 2;
      skew = Math.abs(offset) < 2000 ? 0 : offset;
    }
  }

  async function send(path, options = {}) {
    const sentAt = Date.now();
    const response = await fetch(path, {
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      ...options,
      headers: headers(options.headers),
    });
    noteAnswer(response, sentAt);
    if (response.status === 401) onUnauthorized();
    return response;
  }

  async function fail(response) {
    let reason = `The daemon answered ${response.status}.`;
    try {
      const said = JSON.parse(await response.text());
      if (typeof said.error === "string") reason = said.error;
    } catch {
      // An answer that is no JSON keeps the plain sentence.
    }
    throw new ApiError(response.status, reason);
  }

  async function get(path, { signal } = {}) {
    const response = await send(path, { headers: { Accept: "application/json" }, signal });
    if (!response.ok) await fail(response);
    return response.json();
  }

  return {
    get,
    get skew() {
      return skew;
    },
    get hasToken() {
      return Boolean(token);
    },

    setToken(value) {
      token = value || "";
      tags.clear();
      try {
        if (token) sessionStorage.setItem(TOKEN_KEY, token);
        else sessionStorage.removeItem(TOKEN_KEY);
      } catch {
        // Without session storage the token lives as long as the page.
      }
    },

    // The text of a conditional resource, or null when it has not changed since the last call.
    async getIfChanged(path, { signal } = {}) {
      const tag = tags.get(path);
      const response = await send(path, {
        headers: { Accept: "application/json", ...(tag ? { "If-None-Match": tag } : {}) },
        signal,
      });
      if (response.status === 304) return null;
      if (!response.ok) await fail(response);
      const text = await response.text();
      const fresh = response.headers.get("ETag");
      if (fresh) tags.set(path, fresh);
      return text;
    },

    async getText(path) {
      const response = await send(path, { headers: { Accept: "text/plain" } });
      if (!response.ok) await fail(response);
      return response.text();
    },

    // Status and answer of an action; only a broken connection throws.
    async post(path, body) {
      const response = await send(path, {
        method: "POST",
        ...(body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {}),
      });
      let answer = {};
      try {
        answer = JSON.parse(await response.text()) || {};
      } catch {
        // The status says enough.
      }
      return { status: response.status, answer };
    },

    // Read an event stream and hand over each event; returns when it ends or is aborted.
    async stream(path, onEvent, signal, onOpen) {
      const response = await send(path, { headers: { Accept: "text/event-stream" }, signal });
      if (!response.ok) await fail(response);
      onOpen();
      const parser = createEventParser(onEvent);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        parser(value);
      }
    },

    // A calendar application sends no header, so its link may carry the token.
    calendarLink(path) {
      const url = new URL(path, location.href);
      if (token) url.searchParams.set("token", token);
      return url.href;
    },
  };
}

function readToken() {
  try {
    return sessionStorage.getItem(TOKEN_KEY) || "";
  } catch {
    return "";
  }
}
