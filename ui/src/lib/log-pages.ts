// A log by the page: what is near is here, what is far is forgotten.

import { get, iterationPath } from "./api";
import type { LogPage } from "./types";

export const PAGE_LINES = 200;
const PAGES_MAX = 64;

export class Pages {
  total = 0;
  bytes = 0;
  isOpen = false;
  #pages = new Map<number, string[]>();
  #asked = new Set<number>();
  #ended = new AbortController();

  constructor(
    readonly run: string,
    readonly iter: number,
    readonly log: string,
    readonly changed: () => void,
    readonly failed: (error: unknown) => void,
  ) {}

  /** A line, if it is here; if not, it is asked for. */
  line(at: number): string | undefined {
    const page = Math.floor(at / PAGE_LINES);
    const lines = this.#pages.get(page);
    if (!lines) {
      void this.load(page);
      return undefined;
    }
    return lines[at % PAGE_LINES];
  }

  async load(page: number): Promise<void> {
    if (this.#asked.has(page)) return;
    this.#asked.add(page);
    const path = iterationPath(
      this.run,
      this.iter,
      `/log/${this.log}?line=${page * PAGE_LINES}&count=${PAGE_LINES}`,
    );
    try {
      const found = await get<LogPage>(path, this.#ended.signal);
      this.total = found.total;
      this.bytes = found.bytes;
      this.isOpen = found.is_open;
      this.#pages.delete(page);
      this.#pages.set(page, found.lines);
      const oldest = this.#pages.keys().next().value;
      if (this.#pages.size > PAGES_MAX && oldest !== undefined) this.#pages.delete(oldest);
      this.changed();
    } catch (error) {
      if (!this.#ended.signal.aborted) this.failed(error);
    } finally {
      this.#asked.delete(page);
    }
  }

  /** The file grew: its last page and its end are read again. */
  grown(): void {
    void this.load(Math.floor(Math.max(0, this.total - 1) / PAGE_LINES));
  }

  end(): void {
    this.#ended.abort();
  }
}

/** All lines of a log that is not large, in as many requests as it takes; at most `most` lines. */
export async function allLines(
  run: string,
  iter: number,
  log: string,
  most: number,
  signal: AbortSignal,
): Promise<string[]> {
  const lines: string[] = [];
  for (;;) {
    const path = iterationPath(run, iter, `/log/${log}?line=${lines.length}&count=2000`);
    const page = await get<LogPage>(path, signal);
    lines.push(...page.lines);
    if (page.lines.length === 0 || lines.length >= page.total || lines.length >= most) return lines;
  }
}
