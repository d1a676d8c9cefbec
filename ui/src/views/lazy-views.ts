// Everything that the first screen does not need, as one module: one request, and nothing is missing later if the server is
// gone when a view is first shown.

export { audit, trustOf } from "../lib/export-audit";
export { default as CommandPalette } from "../components/CommandPalette.svelte";
export { default as HelpDialog } from "../components/HelpDialog.svelte";
export { default as ShareDialog } from "../components/ShareDialog.svelte";
export { default as TrustFindings } from "../components/TrustFindings.svelte";
export { default as Transcript } from "../components/Transcript.svelte";
export { default as CompareView } from "./CompareView.svelte";
export { default as FileView } from "./FileView.svelte";
export { default as IterationView } from "./IterationView.svelte";
export { default as ResultsView } from "./ResultsView.svelte";
export { default as RunsView } from "./RunsView.svelte";
export { default as StatsView } from "./StatsView.svelte";
export { default as VersusView } from "./VersusView.svelte";
