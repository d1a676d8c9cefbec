// A log read page by page. Only the pages near the view stay in memory, so a log may have any length.

import { get, iterationPath } from "./api";
import type { Scope } from "./scope";
import type { LogPage } from "./types";

const PAGE_LINES = 200;
const PAGES_MAX = 64;
const BULK_LINES = 2000;

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

function fetchLines(source: LogSource, from: number, count: number, signal: AbortSignal): Promise<LogPage> {
  return get<LogPage>(source.scope, logPath(source, `?line=${from}&count=${count}`), signal);
}

export class LogPages {
  total = 0;
  bytes = 0;
  #pages = new Map<number, string[]>();
  #loading = new Set<number>();
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
      void this.load(page);
      return undefined;
    }
    return lines[index % PAGE_LINES];
  }

  async load(page: number): Promise<void> {
    if (this.#loading.has(page)) return;
    this.#loading.add(page);
    try {
      const answer = await fetchLines(this.source, page * PAGE_LINES, PAGE_LINES, this.#closed.signal);
      this.total = answer.total;
      this.bytes = answer.bytes;
      // Deleting first moves the page to the end of the map's order, which decides what is evicted.
      this.#pages.delete(page);
      this.#pages.set(page, answer.lines);
      const oldest = this.#pages.keys().next().value;
      if (this.#pages.size > PAGES_MAX && oldest !== undefined) this.#pages.delete(oldest);
      this.onchange();
    } catch (error) {
      if (!this.#closed.signal.aborted) this.onerror(error);
    } finally {
      this.#loading.delete(page);
    }
  }

  /** Reads the last page again, after the file changed. */
  refresh(): void {
    void this.load(Math.floor(Math.max(0, this.total - 1) / PAGE_LINES));
  }

  close(): void {
    this.#closed.abort();
  }
}

/** Reads a log from its start, at most `linesMax` lines. */
export async function readLog(source: LogSource, linesMax: number, signal: AbortSignal): Promise<string[]> {
  const lines: string[] = [];
  for (;;) {
    const page = await fetchLines(source, lines.length, BULK_LINES, signal);
    lines.push(...page.lines);
    if (page.lines.length === 0 || lines.length >= page.total || lines.length >= linesMax) return lines;
  }
}
