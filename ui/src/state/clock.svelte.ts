/** This browser's clock and, relative to it, the server's. */
export class Clock {
  /** Advances once a second while the page is visible. */
  nowMs = $state.raw(Date.now());
  #offsetMs = 0;

  get serverMs(): number {
    return this.nowMs + this.#offsetMs;
  }

  sync(serverNowMs: number): void {
    this.nowMs = Date.now();
    this.#offsetMs = serverNowMs - this.nowMs;
  }

  start(): () => void {
    const timer = setInterval(() => document.hidden || (this.nowMs = Date.now()), 1000);
    return () => clearInterval(timer);
  }
}
