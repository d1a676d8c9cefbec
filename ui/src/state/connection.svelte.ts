import type { ConnectionState } from "../lib/event-stream";

/** The state of the connection to the server. */
export class Connection {
  state = $state.raw<ConnectionState>("connecting");
  lastContactMs = $state.raw(Date.now());
  /** Whether the server now ships another build of this page. */
  isPageOutdated = $state.raw(false);
  #build = "";

  contact(): void {
    this.lastContactMs = Date.now();
  }

  checkBuild(build: string): void {
    this.#build ||= build;
    if (build !== this.#build) this.isPageOutdated = true;
  }
}
