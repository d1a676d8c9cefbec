// A log that is read once from its start, and then only where it grew.

import { ApiError, get } from "./api";
import { logPath, type LogSource } from "./log-pages";
import type { LogPage } from "./types";

/** The most lines that the server sends at once. */
const PAGE_LINES = 2000;

/** A line of a log and its number, from 0. The same object stands for the same line after every read. */
export interface IndexedLine {
  readonly index: number;
  readonly text: string;
}

export class GrowingLog {
  /** The lines in order. Of a long log, only the first and the newest are kept. */
  lines: IndexedLine[] = [];
  #next = 0;

  constructor(
    readonly source: LogSource,
    readonly newestMax: number,
  ) {}

  /** How many lines between the first and the newest are not kept. */
  get omitted(): number {
    const last = this.lines.at(-1);
    return last ? last.index + 1 - this.lines.length : 0;
  }

  /** Reads what was appended. An iteration may lack a log, for example in a clone: such a log has no lines. */
  async read(signal: AbortSignal): Promise<void> {
    for (;;) {
      const page = await this.#page(signal);
      if (page === null || page.total < this.#next) {
        [this.lines, this.#next] = [[], 0];
        if (page === null) return;
        continue;
      }
      const end = this.#append(page);
      if (page.lines.length === 0 || end >= page.total) return;
      this.#next = Math.max(this.#next, page.total - this.newestMax);
    }
  }

  async #page(signal: AbortSignal): Promise<LogPage | null> {
    try {
      const path = logPath(this.source, `?line=${this.#next}&count=${PAGE_LINES}`);
      return await get<LogPage>(this.source.scope, path, signal);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  /** Adds the lines of a page; returns the number of the line after them. */
  #append(page: LogPage): number {
    const end = page.from + page.lines.length;
    // A line without an end may have grown since the last read.
    while ((this.lines.at(-1)?.index ?? -1) >= page.from) this.lines.pop();
    page.lines.forEach((text, nth) => this.lines.push({ index: page.from + nth, text }));
    this.#next = page.is_open && end === page.total && page.lines.length > 0 ? end - 1 : end;
    // Several lines at a time are dropped, so that a line that arrives seldom moves all others.
    const excess = this.lines.length - PAGE_LINES - this.newestMax;
    if (excess > PAGE_LINES) this.lines.splice(PAGE_LINES, excess);
    return end;
  }
}
