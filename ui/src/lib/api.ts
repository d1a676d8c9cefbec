// Asks the server. Every answer is of a type that the server's own types gave.

import { answerFrom, kept } from "./export-data";
import type { Trial } from "./router";
import type { Fault } from "./types";

/** What the server says went wrong. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null,
  ) {
    super(message);
  }
}

/** The answer, or a `Refused`; a request that is no longer wanted is broken off. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (kept) {
    const found = answerFrom(kept, path);
    if (found === undefined)
      throw new Refused(404, "not_kept", "this is not in the exported file", "the repository has all of it");
    return found as T;
  }
  const answer = await fetch(path, { signal, credentials: "same-origin" });
  if (answer.ok) return (await answer.json()) as T;
  let told: Partial<Fault> = {};
  try {
    told = (await answer.json()) as Fault;
  } catch {
    // Not ours: a proxy may stand in between.
  }
  const { code = "http", message = `the server answered ${answer.status}`, hint = null } = told.error ?? {};
  throw new Refused(answer.status, code, message, hint);
}

/** Where the addresses of what is looked at begin, at the server. */
let within = "";

export function askWithin(trial: Trial | undefined): void {
  within = trial ? `/trial/${trial.case}/${trial.id}` : "";
}

/** The address of an iteration at the server, or of something in it. */
export function iterationPath(run: string, iter: number, rest = ""): string {
  return `${within}/api/iterations/${encodeURIComponent(run)}/${String(iter).padStart(4, "0")}${rest}`;
}

export function forRun(path: string, run: string | undefined): string {
  if (!run) return within + path;
  return `${within}${path}${path.includes("?") ? "&" : "?"}run=${encodeURIComponent(run)}`;
}
