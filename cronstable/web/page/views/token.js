// The token: asked for when the daemon wants one, kept for this tab only, changed or forgotten at will.

import { h } from "../core/dom.js";

export function openToken(app, overlays, { asked = app.store.state.conn.denied } = {}) {
  const { api } = app;
  const field = h("input", {
    type: "password",
    name: "token",
    autocomplete: "current-password",
    "aria-label": "Token",
    placeholder: "Token",
    spellcheck: "false",
    required: true,
  });
  const problem = h("p", { class: "is-failed", role: "alert", hidden: true });
  const forget = h("button", {
    type: "button",
    class: "button",
    text: "Forget it",
    hidden: !api.hasToken,
    on: {
      click: () => {
        api.setToken("");
        dialog.close();
        app.poller.reset();
      },
    },
  });
  const send = h("button", { type: "submit", class: "button primary", text: "Continue" });
  const form = h(
    "form",
    {
      class: "token-form",
      on: {
        submit: async (event) => {
          event.preventDefault();
          send.disabled = true;
          api.setToken(field.value.trim());
          const known = await api.get("/whoami").then(
            () => true,
            (error) => error.status !== 401,
          );
          send.disabled = false;
          if (!known) {
            api.setToken("");
            problem.textContent = "The daemon does not know this token.";
            problem.hidden = false;
            field.select();
            return;
          }
          dialog.close();
          app.poller.reset();
        },
      },
    },
    h("p", {
      class: "soft",
      text: asked ? "This daemon asks for a token." : "A token decides what this page may do.",
    }),
    field,
    problem,
    h("p", { class: "faint", text: "It stays in this browser tab until the tab is closed." }),
    h("div", { class: "row" }, send, forget),
  );
  const dialog = overlays.open({ title: "Token", kind: "small", content: form, id: "token" });
  field.focus();
}
