import { errorText, isTemporary } from "../lib/api";
import { GrowingLog } from "../lib/growing-log";
import type { Scope } from "../lib/scope";
import { hasAgentEvents, transcriptRows, type TranscriptRow } from "../lib/transcript";

const NEWEST_LINES_MAX = 20_000;
const RETRY_MS = 3000;

/**
 * The transcript of one iteration. After each change, only new lines are read, and never twice at a time. After an error
 * the rows stay, and a temporary one is tried again.
 */
export class TranscriptData {
  rows = $state.raw<TranscriptRow[]>([]);
  /** How many events between the first and the newest are not shown. */
  omitted = $state.raw(0);
  isLoaded = $state.raw(false);
  error = $state.raw<string | null>(null);
  #events: GrowingLog;
  #stream: GrowingLog;
  #closed = new AbortController();
  #isReading = false;
  #isOutdated = false;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(scope: Scope, run: string, iter: number) {
    this.#events = new GrowingLog({ scope, run, iter, log: "events" }, NEWEST_LINES_MAX);
    this.#stream = new GrowingLog({ scope, run, iter, log: "stream" }, NEWEST_LINES_MAX);
  }

  async read(): Promise<void> {
    this.#isOutdated = true;
    clearTimeout(this.#retry);
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isOutdated) {
      this.#isOutdated = false;
      try {
        await this.#readLogs();
      } catch (error) {
        if (this.#closed.signal.aborted) return;
        this.error = errorText(error);
        if (isTemporary(error)) this.#retry = setTimeout(() => void this.read(), RETRY_MS);
      }
    }
    this.#isReading = false;
  }

  async #readLogs(): Promise<void> {
    const { signal } = this.#closed;
    await this.#events.read(signal);
    // The output itself is shown only if the runner could not parse it.
    const isParsed = hasAgentEvents(this.#events.lines);
    if (!isParsed) await this.#stream.read(signal);
    if (signal.aborted) return;
    this.rows = transcriptRows(this.#events.lines, isParsed ? [] : this.#stream.lines);
    this.omitted = this.#events.omitted + (isParsed ? 0 : this.#stream.omitted);
    this.isLoaded = true;
    this.error = null;
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#closed.abort();
  }
}
