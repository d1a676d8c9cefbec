import js from "@eslint/js";
import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

export default ts.config(
  { ignores: ["node_modules/"] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: {
      // Text written by agents must never become markup.
      "svelte/no-at-html-tags": "error",
      // Several regular expressions match control characters on purpose.
      "no-control-regex": "off",
      // The page has its own router, which builds every address.
      "svelte/no-navigation-without-resolve": "off",
      // Sets in `$state.raw` are replaced, never mutated, and bookkeeping needs no signals at all.
      "svelte/prefer-svelte-reactivity": "off",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
);
