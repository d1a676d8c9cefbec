import type { LogHits } from "../lib/types";
import { resource, type Resource } from "./resource.svelte";

/** Lines of a log that match a search or show a failure, with a cursor. */
export class LogHitList {
  index = $state(-1);
  #hits: Resource<LogHits>;

  constructor(path: () => string | undefined, revision?: () => unknown) {
    this.#hits = resource<LogHits>(path, { revision });
  }

  /** Null before the answer arrives and after an error. */
  get hits(): LogHits | null {
    return this.#hits.error === null ? this.#hits.data : null;
  }

  lines = $derived.by(() => new Set(this.hits?.hits.map((hit) => hit.line)));

  /** Moves the cursor and wraps around; returns the line, or undefined if there are no hits. */
  step(by: number): number | undefined {
    const hits = this.hits?.hits ?? [];
    if (hits.length === 0) return undefined;
    this.index = (this.index + by + hits.length) % hits.length;
    return hits[this.index]?.line;
  }
}
