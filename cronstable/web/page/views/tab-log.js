// The log tab: replay, then live lines, then the next run.

import { h } from "../core/dom.js";
import { followLog } from "./log-follow.js";
import { createLogPane } from "./log-pane.js";

export function logTab(app, name) {
  const job = app.store.state.byName.get(name);
  const silent = job && !job.raw.captureStdout && !job.raw.captureStderr;
  const pane = createLogPane(app, { label: name });
  const notice = silent
    ? h("p", {
        class: "empty",
        text: "This job captures neither output nor errors, so there is no log. captureStdout and captureStderr turn it on.",
      })
    : job && !job.raw.captureStdout
      ? h("p", { class: "log-notice soft", text: "Only errors are captured (captureStdout is off)." })
      : null;
  const stop = silent ? () => {} : followLog(app, name, pane);
  return {
    node: h("div", { class: "tab-log" }, notice, silent ? null : pane.node),
    focusSearch: pane.focusSearch,
    destroy() {
      stop();
      pane.destroy();
    },
  };
}
