import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

const OUT_DIR = process.env.OUT_DIR ?? "../crates/runner-ui/dist";

/** What the first screen does not need. It is one file, which is read when the first such view is shown. */
const LAZY_MODULES = new RegExp(
  [
    "/views/(?!Overview)",
    "/components/(Agent|CaseMatrix|CodeTokens|CommandPalette|Comparison|Diff|Failure|Gantt|Help|InlinePatch|IterationFacts|IterationHeader)",
    "/components/(IterationTabs|Log|Meta|NodeTotals|PromptPane|ScrollTable|Share|SuccessRate|Transcript|TreeMap|TrialCell|TrustFindings)",
    "/components/Versus",
    "/lib/(diff|export-audit|findings|grid-keys|growing-log|highlight|iteration-facts|json-fields|log-folds|log-pages|palette|render-ansi|share|transcript)[.-]",
    "/state/(log-|transcript-)",
    "/node_modules/virtua/",
  ].join("|"),
);

// The build is committed, so file names have no hashes: a change edits files instead of renaming them. The page that a server
// sends loads its views when they are first shown. An exported page has no server, so `--mode export` builds one file.
export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  build:
    mode === "export"
      ? {
          outDir: `${OUT_DIR}/export`,
          emptyOutDir: true,
          target: "es2022",
          cssCodeSplit: false,
          copyPublicDir: false,
          rollupOptions: {
            input: "src/main.ts",
            output: {
              entryFileNames: "app.js",
              assetFileNames: "app[extname]",
              codeSplitting: false,
            },
          },
        }
      : {
          outDir: OUT_DIR,
          emptyOutDir: true,
          target: "es2022",
          modulePreload: false,
          cssCodeSplit: false,
          rollupOptions: {
            output: {
              entryFileNames: "assets/app.js",
              chunkFileNames: "assets/[name].js",
              assetFileNames: "assets/app[extname]",
              codeSplitting: {
                includeDependenciesRecursively: false,
                groups: [
                  { name: "views", test: LAZY_MODULES, priority: 2 },
                  { name: "page", test: /./, priority: 1 },
                ],
              },
            },
          },
        },
  server: {
    // `just ui-dev` starts the server and passes its address.
    proxy: Object.fromEntries(
      ["/api", "/events", "/trial"].map((path) => [
        path,
        { target: process.env.RUNNER_UI ?? "http://127.0.0.1:7878", changeOrigin: true },
      ]),
    ),
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
}));
