import { readLog } from "../lib/log-pages";
import type { Scope } from "../lib/scope";
import { transcriptRows, type TranscriptRow } from "../lib/transcript";

const LINES_MAX = 20_000;

/** The transcript of one iteration. It is read again after each change, never twice at a time. */
export class TranscriptData {
  rows = $state.raw<TranscriptRow[]>([]);
  isLoaded = $state.raw(false);
  #closed = new AbortController();
  #isReading = false;
  #isOutdated = false;

  constructor(
    readonly scope: Scope,
    readonly run: string,
    readonly iter: number,
  ) {}

  async read(): Promise<void> {
    this.#isOutdated = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isOutdated) {
      this.#isOutdated = false;
      const [events, stream] = await Promise.all([this.#lines("events"), this.#lines("stream")]);
      if (this.#closed.signal.aborted) return;
      this.rows = transcriptRows(events, stream);
      this.isLoaded = true;
    }
    this.#isReading = false;
  }

  /** An iteration may lack a log, for example in a clone. */
  #lines(log: string): Promise<string[]> {
    const { scope, run, iter } = this;
    return readLog({ scope, run, iter, log }, LINES_MAX, this.#closed.signal).catch(() => []);
  }

  close(): void {
    this.#closed.abort();
  }
}
