// One stream of changes per browser, however many tabs: a browser allows six connections to a server, and a tab
// that held one each would block the seventh. One tab holds the stream and tells the others.

import type { Change } from "./types";

export type Link = "connecting" | "live" | "lost";

export interface Listener {
  change(change: Change): void;
  link(link: Link): void;
  /** The server lives, by its own clock. */
  heartbeat(nowMs: number): void;
}

type Message =
  { kind: "change"; change: Change } | { kind: "link"; link: Link } | { kind: "heartbeat"; now: number };

const NAMES = [
  "hello",
  "tree_changed",
  "run_state_changed",
  "iteration_added",
  "iteration_changed",
  "run_changed",
  "trial_changed",
  "results_changed",
  "resync",
] as const;

/** Listens until told to stop. */
export function listen(listener: Listener): () => void {
  const stopped = new AbortController();
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("runner-ui");
  const tell = (message: Message) => {
    deliver(listener, message);
    channel?.postMessage(message);
  };
  if (channel) channel.onmessage = (event: MessageEvent<Message>) => deliver(listener, event.data);
  const lead = (hasMissed: boolean) =>
    new Promise<void>((done) => {
      const stream = open(tell, hasMissed);
      stopped.signal.addEventListener("abort", () => {
        stream.close();
        done();
      });
    });
  if (channel && navigator.locks) {
    let [isLeader, isFollower] = [false, false];
    navigator.locks
      .request("runner-ui-stream", { signal: stopped.signal }, () => {
        isLeader = true;
        return lead(isFollower);
      })
      .catch(() => undefined);
    // Who does not lead learns from the leader's next word; until then the page shows what it has read.
    setTimeout(() => {
      isFollower = !isLeader;
      if (isFollower) deliver(listener, { kind: "link", link: "live" });
    }, 300);
  } else {
    void lead(false);
  }
  return () => {
    stopped.abort();
    channel?.close();
  };
}

function deliver(listener: Listener, message: Message): void {
  if (message.kind === "change") listener.change(message.change);
  else if (message.kind === "link") listener.link(message.link);
  else listener.heartbeat(message.now);
}

/** Opens the stream. Who takes it over from another tab may have missed something in between. */
function open(tell: (message: Message) => void, hasMissed: boolean): EventSource {
  const stream = new EventSource("/events");
  let wasLost = hasMissed;
  stream.onopen = () => {
    tell({ kind: "link", link: "live" });
    // The server replays what was missed; one that is new says `resync` itself. Reading once more is never wrong.
    if (wasLost) tell({ kind: "change", change: { event: "resync" } });
    wasLost = false;
  };
  stream.onerror = () => {
    wasLost = true;
    tell({ kind: "link", link: "lost" });
  };
  for (const name of NAMES) {
    stream.addEventListener(name, (event) => {
      const change = JSON.parse((event as MessageEvent<string>).data) as Change;
      tell({ kind: "change", change });
    });
  }
  stream.addEventListener("heartbeat", (event) => {
    const { now_ms: now } = JSON.parse((event as MessageEvent<string>).data) as { now_ms: number };
    tell({ kind: "heartbeat", now });
  });
  return stream;
}
