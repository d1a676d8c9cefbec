import { errorText, get, isRepositoryGone, isTemporary } from "../lib/api";
import { untrack } from "svelte";
import type { Scope } from "../lib/scope";
import { connection, router } from "./store";

const RETRY_MS = 3000;

interface ResourceOptions<T> {
  /** The scope of the path; the page's own by default. */
  scope?: Scope;
  /** The resource is read again when this value changes. */
  revision?: () => unknown;
  /** Whether a new path clears the old data at once instead of showing it until the answer arrives. */
  clearsOnNewPath?: boolean;
  /** What the first path gives, if that is known already: then it is not read. */
  initial?: () => T | undefined;
}

export interface Resource<T> {
  readonly data: T | null;
  readonly error: string | null;
  readonly isLoading: boolean;
}

/**
 * Reads an API path for as long as the component lives, and again when the path or the revision changes, when the server
 * is back, and some time after a temporary error. A request that is no longer needed is aborted. An undefined path reads
 * nothing.
 */
export function resource<T>(path: () => string | undefined, options: ResourceOptions<T> = {}): Resource<T> {
  let data = $state.raw<T | null>(null);
  let error = $state.raw<string | null>(null);
  let isLoading = $state.raw(false);
  // Derived values stop updates that change neither the path nor the revision.
  const wanted = $derived(path());
  const revision = $derived(options.revision?.());
  let shown: string | undefined;
  let retries = $state.raw(0);

  $effect(() => {
    void [revision, retries, connection.reconnects];
    const scope = options.scope ?? router.scope;
    const request = new AbortController();
    if (wanted === undefined || (options.clearsOnNewPath && wanted !== shown)) data = error = null;
    const known =
      shown === undefined && wanted !== undefined ? untrack(() => options.initial?.()) : undefined;
    shown = wanted;
    isLoading = wanted !== undefined && known === undefined;
    if (wanted === undefined) return;
    if (known !== undefined) {
      [data, error] = [known, null];
      return;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const settle = (value: T | null, reason: unknown) => {
      if (request.signal.aborted) return;
      if (reason === undefined) data = value;
      else if (isTemporary(reason)) timer = setTimeout(() => retries++, RETRY_MS);
      // The page itself says that the repository is gone, once.
      const isWaiting = isRepositoryGone(reason);
      error = reason === undefined || isWaiting ? null : errorText(reason);
      isLoading = isWaiting;
    };
    get<T>(scope, wanted, request.signal).then(
      (value) => settle(value, undefined),
      (reason: unknown) => settle(null, reason),
    );
    return () => {
      clearTimeout(timer);
      request.abort();
    };
  });

  return {
    get data() {
      return data;
    },
    get error() {
      return error;
    },
    get isLoading() {
      return isLoading;
    },
  };
}
