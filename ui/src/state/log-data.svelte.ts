import { errorText } from "../lib/api";
import { LogPages, type LogSource } from "../lib/log-pages";

/** The lines of one log. */
export class LogData {
  total = $state.raw(0);
  bytes = $state.raw(0);
  error = $state.raw<string | null>(null);
  isLoaded = $state.raw(false);
  #version = $state.raw(0);
  #pages: LogPages;

  constructor(source: LogSource) {
    this.#pages = new LogPages(
      source,
      () => {
        this.total = this.#pages.total;
        this.bytes = this.#pages.bytes;
        this.isLoaded = true;
        this.error = null;
        this.#version++;
      },
      (error) => (this.error = errorText(error)),
    );
  }

  /** A line; undefined while it is loading. */
  line(index: number): string | undefined {
    void this.#version;
    return this.#pages.line(index);
  }

  load(): Promise<void> {
    return this.#pages.load(0);
  }

  refresh(): void {
    this.#pages.refresh();
  }

  close(): void {
    this.#pages.close();
  }
}
