// The server's event stream, shared by all tabs of a browser. A browser allows six connections per server, so one tab,
// the leader, holds the stream and forwards every message to the others.

import type { ChangeEvent } from "./types";

export type ConnectionState = "connecting" | "live" | "lost";

export interface StreamListener {
  change(change: ChangeEvent): void;
  connection(state: ConnectionState): void;
  /** The server is alive; `nowMs` is its clock. */
  heartbeat(nowMs: number): void;
}

type Message =
  | { kind: "change"; change: ChangeEvent; id: string }
  | { kind: "connection"; state: ConnectionState }
  | { kind: "heartbeat"; now: number };

type Publish = (message: Message) => void;

const EVENT_NAMES = [
  "hello",
  "tree_changed",
  "run_state_changed",
  "iteration_added",
  "iteration_changed",
  "run_changed",
  "trial_changed",
  "results_changed",
  "resync",
] as const satisfies ChangeEvent["event"][];

const FOLLOWER_DELAY_MS = 300;

/**
 * Subscribes to the stream; the returned function unsubscribes. `since` gives the id of the newest event when the page was
 * read: the stream continues from there, so nothing is read twice. What other tabs forward is heard from the start.
 */
export function subscribe(listener: StreamListener, since: Promise<string>): () => void {
  const stopped = new AbortController();
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("runner-ui");
  let lastId = "";
  const receive: Publish = (message) => {
    if (message.kind === "change" && message.id) lastId = message.id;
    deliver(listener, message);
  };
  const publish: Publish = (message) => {
    receive(message);
    channel?.postMessage(message);
  };
  if (channel) channel.onmessage = (event: MessageEvent<Message>) => receive(event.data);
  const lead = async () => {
    const read = await since;
    if (stopped.signal.aborted) return;
    await new Promise<void>((done) => {
      const stream = openStream(publish, () => lastId || read);
      stopped.signal.addEventListener("abort", () => {
        stream.close();
        done();
      });
    });
  };
  if (channel && navigator.locks) {
    let [isLeader, isFollower] = [false, false];
    navigator.locks
      .request("runner-ui-stream", { signal: stopped.signal }, () => {
        isLeader = true;
        return lead();
      })
      .catch(() => undefined);
    // A follower learns the real state from the leader's next message.
    setTimeout(() => {
      isFollower = !isLeader;
      if (isFollower) deliver(listener, { kind: "connection", state: "live" });
    }, FOLLOWER_DELAY_MS);
  } else {
    void lead();
  }
  return () => {
    stopped.abort();
    channel?.close();
  };
}

function deliver(listener: StreamListener, message: Message): void {
  if (message.kind === "change") listener.change(message.change);
  else if (message.kind === "connection") listener.connection(message.state);
  else listener.heartbeat(message.now);
}

const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 15_000;

/**
 * The stream, opened again after any end. A browser retries by itself only if the connection breaks, not after an error
 * response such as 503. The server first sends what changed since the event with the id `lastId`, or `resync` if it does not
 * know that event.
 */
function openStream(publish: Publish, lastId: () => string): { close(): void } {
  let delay = RETRY_MIN_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stream: EventSource;
  const connect = () => {
    stream = new EventSource(`/events?since=${encodeURIComponent(lastId())}`);
    stream.onopen = () => {
      delay = RETRY_MIN_MS;
      publish({ kind: "connection", state: "live" });
    };
    stream.onerror = () => {
      publish({ kind: "connection", state: "lost" });
      if (stream.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(connect, delay);
      delay = Math.min(RETRY_MAX_MS, delay * 2);
    };
    listen(stream, publish);
  };
  connect();
  return {
    close() {
      clearTimeout(timer);
      stream.close();
    },
  };
}

function listen(stream: EventSource, publish: Publish): void {
  for (const name of EVENT_NAMES) {
    stream.addEventListener(name, (event) => {
      const { data, lastEventId } = event as MessageEvent<string>;
      publish({ kind: "change", change: JSON.parse(data) as ChangeEvent, id: lastEventId });
    });
  }
  stream.addEventListener("heartbeat", (event) => {
    const { now_ms: now } = JSON.parse((event as MessageEvent<string>).data) as { now_ms: number };
    publish({ kind: "heartbeat", now });
  });
}
