// The one store of the page's state. Views listen to keys and are told once per frame.

import { framed } from "./dom.js";

export function createStore(initial) {
  const state = { ...initial };
  const listeners = [];
  let changed = new Set();

  const flush = framed(() => {
    const now = changed;
    changed = new Set();
    for (const { keys, fn } of listeners.slice()) {
      if (keys.some((key) => now.has(key))) fn(state, now);
    }
  });

  function touch(key) {
    changed.add(key);
    flush();
  }

  return {
    state,
    touch,
    set(key, value) {
      if (Object.is(state[key], value)) return;
      state[key] = value;
      touch(key);
    },
    // Call fn(state, changedKeys) after any of the keys changed; returns a function that stops it.
    on(keys, fn) {
      const entry = { keys, fn };
      listeners.push(entry);
      return () => {
        const at = listeners.indexOf(entry);
        if (at >= 0) listeners.splice(at, 1);
      };
    },
  };
}
