import { mount } from "svelte";
import { readEmbeddedRun } from "./lib/export-data";
import App from "./App.svelte";
import "./app.css";

await readEmbeddedRun();
const target = document.getElementById("app");
if (target) mount(App, { target });
