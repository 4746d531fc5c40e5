// The keyboard. Letters act on the selected job; nothing happens while a person types.

export function createKeys(app) {
  const { store, actions } = app;
  const selected = () => store.state.byName.get(store.state.selected);

  function move(by) {
    const order = store.state.order ?? [];
    if (!order.length) return;
    const at = order.findIndex((job) => job.name === store.state.selected);
    const next =
      at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.max(0, Math.min(order.length - 1, at + by));
    app.select(order[next].name);
  }

  const withJob = (act) => () => {
    const job = selected();
    if (job) act(job);
  };
  const control = (act) =>
    withJob((job) => {
      if (actions.may("control")) act(job);
    });

  const handlers = {
    "/": () => app.focusFilter(),
    j: () => move(1),
    ArrowDown: () => move(1),
    k: () => move(-1),
    ArrowUp: () => move(-1),
    Enter: withJob((job) => app.openJob(job.name)),
    l: withJob((job) => app.openJob(job.name, "log")),
    r: control((job) => actions.start(job.name)),
    x: control((job) => actions.cancel(job.name)),
    p: control((job) => actions.togglePause(job)),
    c: withJob((job) => app.copy(job.raw.command, "command")),
    g: () => app.poller.refresh(),
    t: () => app.nextColours(),
    T: () => app.toggleTheme(),
    i: () => app.open("timeline"),
    m: () => app.open("livelogs"),
    w: () => app.open("wallboard"),
    a: () => app.alerts.acknowledge(),
    "?": () => app.open("help"),
  };

  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (
      (event.ctrlKey || event.metaKey) &&
      !event.shiftKey &&
      !event.altKey &&
      (event.key === "k" || (event.ctrlKey && event.key === "p"))
    ) {
      event.preventDefault();
      if (app.overlays.id === "palette") app.overlays.close();
      else app.open("palette");
      return;
    }
    if (event.key === "Escape" && !app.overlays.isOpen) {
      if (typing) event.target.blur();
      else if (app.drawer.name) app.closeJob();
      else if (store.state.filter.text || store.state.filter.group !== "all")
        app.setFilter({ text: "", group: "all" });
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || app.overlays.isOpen) return;
    // A focused button keeps its own Enter, and a scrolling log its arrows.
    if (event.key === "Enter" && event.target.closest?.("button, a")) return;
    if (event.key.startsWith("Arrow") && event.target.closest?.(".log-lines, .tab-body")) return;
    const handler = handlers[event.key];
    if (!handler) return;
    event.preventDefault();
    handler();
  });
}
