// Downloads the export of a run and reports how far it is.

export interface ExportProgress {
  iterations: number;
  total: number;
  bytes: number;
  isDone: boolean;
}

const MARK = new TextEncoder().encode('id="iteration-');

/** How often the bytes contain the start of an iteration. A mark that is split between two pieces is not counted. */
export function countIterations(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(MARK[0] ?? 0); at >= 0; at = bytes.indexOf(MARK[0] ?? 0, at + 1))
    if (MARK.every((byte, index) => bytes[at + index] === byte)) count++;
  return count;
}

/** Saves the export as a file. Fails if the server cannot make it, or the response is incomplete. */
export async function downloadExport(
  url: string,
  name: string,
  onprogress: (progress: ExportProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(url, { signal, credentials: "same-origin" });
  if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
  const progress = {
    iterations: 0,
    total: Number(response.headers.get("x-iterations") ?? 0),
    bytes: 0,
    isDone: false,
  };
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    progress.bytes += value.length;
    progress.iterations = Math.min(progress.total, progress.iterations + countIterations(value));
    onprogress({ ...progress });
  }
  save(new Blob(pieces, { type: "text/html" }), name);
  onprogress({ ...progress, iterations: progress.total, isDone: true });
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
