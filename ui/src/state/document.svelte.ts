import { preferences, router, runData } from "./store";

const ICON_COLORS = {
  pass: "#2a9d5c",
  run: "#3b82d6",
  retry: "#d98e04",
  fail: "#d33a2c",
  open: "#8a94a0",
};

/** Keeps the theme, and the title and icon that show the run's state in a background tab, up to date. */
export function syncDocument(): void {
  const title = $derived(pageTitle());
  const tone = $derived(runData.label?.tone ?? "open");
  $effect(() => {
    document.title = title;
  });
  $effect(() => {
    const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${ICON_COLORS[tone]}"/></svg>`;
    document.getElementById("icon")?.setAttribute("href", `data:image/svg+xml,${encodeURIComponent(icon)}`);
  });
  $effect(() => {
    const { dataset } = document.documentElement;
    if (preferences.theme === "system") delete dataset.theme;
    else dataset.theme = preferences.theme;
  });
}

function pageTitle(): string {
  const [{ route }, { snapshot }] = [router, runData];
  if (runData.showsResults) return `${route.view === "compare" ? "compare" : "results"} · evaluation`;
  if (!snapshot?.run || !runData.label) return "runner";
  const { glyph, text } = runData.label;
  const { leaves_passed: passed, leaves_total: total } = snapshot.progress;
  const view = route.view === "iteration" ? `#${route.iter} ${route.tab}` : route.view;
  const parts = [`${glyph} ${passed}/${total} ${text}`, view === "overview" ? "" : view, snapshot.run.id];
  return parts.filter(Boolean).join(" · ");
}
