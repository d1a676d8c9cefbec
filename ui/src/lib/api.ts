// The client of the server's read-only API. In an exported page, the data inside the page answers instead.

import { answerFromExport, exportedRun } from "./export-data";
import { apiPrefix, type Scope } from "./scope";
import type { ErrorResponse } from "./types";

/** An error response of the server, as opposed to a failed connection. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status = 404,
    readonly code = "",
  ) {
    super(message);
  }
}

/** Whether the same request may succeed later: the server cannot be reached, or cannot read the repository now. */
export function isTemporary(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500;
}

/** Whether the repository was moved or removed. The page says so once, and every view waits until it is back. */
export function isRepositoryGone(error: unknown): boolean {
  return error instanceof ApiError && error.code === "repository_gone";
}

/** Gets a JSON document; fails with an `ApiError`, or with the error of `fetch`. */
export async function get<T>(scope: Scope, path: string, signal?: AbortSignal): Promise<T> {
  if (exportedRun) {
    const answer = await answerFromExport(exportedRun, path);
    if (answer === undefined) throw new ApiError("not included in the exported file");
    return answer as T;
  }
  return (await (await request(scope, path, signal)).json()) as T;
}

/** Gets a document with JSON on each line. `onpart` gets each line as soon as it arrives. */
export async function getParts<T>(scope: Scope, path: string, onpart: (part: T) => void): Promise<void> {
  const response = await request(scope, path);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    const lines = (rest + piece.value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onpart(JSON.parse(line) as T);
  }
  if (rest) onpart(JSON.parse(rest) as T);
}

async function request(scope: Scope, path: string, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(apiUrl(scope, path), { signal, credentials: "same-origin" }).catch(
    (error: unknown) => {
      if (signal?.aborted) throw error;
      throw new Error("Cannot reach the server.", { cause: error });
    },
  );
  if (response.ok) return response;
  // A proxy's error page is not JSON.
  const body = (await response.json().catch(() => ({}))) as Partial<ErrorResponse>;
  const message = body.error?.message ?? `the server answered ${response.status}`;
  throw new ApiError(message, response.status, body.error?.code);
}

export function apiUrl(scope: Scope, path: string): string {
  return apiPrefix(scope) + path;
}

/** The API path of an iteration, or of something below it. */
export function iterationPath(run: string, iter: number, rest = ""): string {
  return `/api/iterations/${encodeURIComponent(run)}/${String(iter).padStart(4, "0")}${rest}`;
}

/** Adds the `run` parameter; without one, the server picks the current run. */
export function withRun(path: string, run: string | undefined): string {
  if (!run) return path;
  return `${path}${path.includes("?") ? "&" : "?"}run=${encodeURIComponent(run)}`;
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
