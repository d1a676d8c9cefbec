import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// Names without fingerprints: a commit changes what is in the files, not what they are called.
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
    // `just ui-dev` starts the server and says where it is.
    proxy: Object.fromEntries(
      ["/api", "/events", "/trial"].map((path) => [
        path,
        { target: process.env.RUNNER_UI ?? "http://127.0.0.1:7878", changeOrigin: true },
      ]),
    ),
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
