import { beforeEach, describe, expect, it, vi } from "vitest";
import { GrowingLog } from "./growing-log";

let lines: string[] = [];
let isOpen = false;
let status = 200;
const requests: string[] = [];

beforeEach(() => {
  [lines, isOpen, status] = [[], false, 200];
  requests.length = 0;
  vi.stubGlobal("fetch", async (path: string) => {
    requests.push(path.replace(/.*\?/, ""));
    if (status !== 200) return Response.json({ error: { message: "no" } }, { status });
    const query = new URL(path, "http://localhost").searchParams;
    const total = lines.length;
    const from = Math.min(Number(query.get("line")), total);
    const page = lines.slice(from, from + Number(query.get("count")));
    return Response.json({ total, bytes: 1, from, lines: page, cut: [], is_open: isOpen });
  });
});

const { signal } = new AbortController();
const source = { scope: {}, run: "demo", iter: 1, log: "events" };
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`);
const texts = (log: GrowingLog) => log.lines.map((line) => line.text);

describe("a growing log", () => {
  it("is read only where it grew", async () => {
    const log = new GrowingLog(source, 20_000);
    lines = ["a", "b"];
    await log.read(signal);
    const [first] = log.lines;
    lines.push("c");
    await log.read(signal);
    expect(requests).toEqual(["line=0&count=2000", "line=2&count=2000"]);
    expect(texts(log)).toEqual(["a", "b", "c"]);
    expect(log.lines[0]).toBe(first);
  });

  it("reads a line without an end again", async () => {
    const log = new GrowingLog(source, 20_000);
    [lines, isOpen] = [["a", "b"], true];
    await log.read(signal);
    [lines, isOpen] = [["a", "bcd", "e"], false];
    await log.read(signal);
    expect(texts(log)).toEqual(["a", "bcd", "e"]);
  });

  it("keeps the first and the newest lines of a long one", async () => {
    const log = new GrowingLog(source, 3000);
    lines = numbered(50_000);
    await log.read(signal);
    expect(log.lines.length).toBe(5000);
    expect([log.lines[0]?.text, log.lines.at(-1)?.text]).toEqual(["line 0", "line 49999"]);
    expect(log.omitted).toBe(45_000);
    lines = numbered(60_000);
    await log.read(signal);
    expect(log.lines.at(-1)?.text).toBe("line 59999");
    expect(log.lines.length).toBeLessThanOrEqual(7000);
    expect(log.omitted).toBe(60_000 - log.lines.length);
  });

  it("begins again after the file was replaced", async () => {
    const log = new GrowingLog(source, 20_000);
    lines = ["a", "b", "c"];
    await log.read(signal);
    lines = ["x"];
    await log.read(signal);
    expect(texts(log)).toEqual(["x"]);
  });

  it("is empty if it does not exist, and keeps its lines after an error", async () => {
    const log = new GrowingLog(source, 20_000);
    status = 404;
    await log.read(signal);
    expect(log.lines).toEqual([]);
    [lines, status] = [["a"], 200];
    await log.read(signal);
    status = 503;
    await expect(log.read(signal)).rejects.toThrow("no");
    expect(texts(log)).toEqual(["a"]);
  });
});
