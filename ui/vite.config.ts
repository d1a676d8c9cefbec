import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// The build is committed, so file names have no hashes: a change edits files instead of renaming them.
export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: "../crates/runner-ui/dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    rollupOptions: {
      output: {
        entryFileNames: "assets/app.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/app[extname]",
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
});
