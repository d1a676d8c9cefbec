import type { ConnectionState } from "../lib/event-stream";

/** The state of the connection to the server. */
export class Connection {
  state = $state.raw<ConnectionState>("connecting");
  lastContactMs = $state.raw(Date.now());
  /** How often a lost connection came back: what failed in between is read again. */
  reconnects = $state.raw(0);
  /** Whether the server now ships another build of this page. */
  isPageOutdated = $state.raw(false);
  #build = "";

  set(state: ConnectionState): void {
    if (state === "live" && this.state === "lost") this.reconnects++;
    if (state === "live") this.contact();
    this.state = state;
  }

  contact(): void {
    this.lastContactMs = Date.now();
  }

  checkBuild(build: string): void {
    this.#build ||= build;
    if (build !== this.#build) this.isPageOutdated = true;
  }
}
