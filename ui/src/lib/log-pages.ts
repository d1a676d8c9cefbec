// A log read page by page. Only the pages near the view stay in memory, so a log may have any length.

import { get, isTemporary, iterationPath } from "./api";
import type { Scope } from "./scope";
import type { LogPage } from "./types";

const PAGE_LINES = 200;
const PAGES_MAX = 64;
const RETRY_MS = 3000;

/** Which log to read. */
export interface LogSource {
  scope: Scope;
  run: string;
  iter: number;
  log: string;
}

/** The API path of a log, or of something below it. */
export function logPath({ run, iter, log }: Omit<LogSource, "scope">, rest = ""): string {
  return iterationPath(run, iter, `/log/${log}${rest}`);
}

export class LogPages {
  total = 0;
  bytes = 0;
  #pages = new Map<number, string[]>();
  #loading = new Set<number>();
  /** Pages that could not be loaded. */
  #failed = new Set<number>();
  #retry: ReturnType<typeof setTimeout> | undefined;
  #closed = new AbortController();

  constructor(
    readonly source: LogSource,
    readonly onchange: () => void,
    readonly onerror: (error: unknown) => void,
  ) {}

  /** Returns a line if its page is loaded; otherwise starts loading it. */
  line(index: number): string | undefined {
    const page = Math.floor(index / PAGE_LINES);
    const lines = this.#pages.get(page);
    if (!lines) {
      if (!this.#failed.has(page)) void this.load(page);
      return undefined;
    }
    return lines[index % PAGE_LINES];
  }

  async load(page: number): Promise<void> {
    if (this.#loading.has(page)) return;
    this.#loading.add(page);
    try {
      const path = logPath(this.source, `?line=${page * PAGE_LINES}&count=${PAGE_LINES}`);
      const answer = await get<LogPage>(this.source.scope, path, this.#closed.signal);
      this.#failed.delete(page);
      this.total = answer.total;
      this.bytes = answer.bytes;
      // Deleting first moves the page to the end of the map's order, which decides what is evicted.
      this.#pages.delete(page);
      this.#pages.set(page, answer.lines);
      const oldest = this.#pages.keys().next().value;
      if (this.#pages.size > PAGES_MAX && oldest !== undefined) this.#pages.delete(oldest);
      this.onchange();
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#fail(page, error);
    } finally {
      this.#loading.delete(page);
    }
  }

  /** Reports an error, and loads the page again later if that may succeed. */
  #fail(page: number, error: unknown): void {
    this.#failed.add(page);
    this.onerror(error);
    clearTimeout(this.#retry);
    if (isTemporary(error)) this.#retry = setTimeout(() => this.#loadFailed(), RETRY_MS);
  }

  #loadFailed(): void {
    for (const page of this.#failed) void this.load(page);
  }

  /** Reads the last page again, after the file changed, and those that could not be loaded. */
  refresh(): void {
    this.#loadFailed();
    void this.load(Math.floor(Math.max(0, this.total - 1) / PAGE_LINES));
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#closed.abort();
  }
}
