// Which lines of a log are shown while some of its groups are folded: a group then shows only its first line.

import type { LogGroup } from "./types";

/** Lines that are not shown: from `from` up to, but not including, `to`. */
interface HiddenLines {
  from: number;
  to: number;
  /** How many lines before `from` are hidden. */
  before: number;
}

/** The mapping between the lines of a log and the rows on the screen. */
export class LogFolds {
  readonly #hidden: HiddenLines[] = [];
  readonly rows: number;

  /** Groups are sorted by their first lines, outer ones first. */
  constructor(
    readonly total: number,
    groups: LogGroup[],
    isFolded: (group: LogGroup) => boolean,
  ) {
    let count = 0;
    let end = 0;
    for (const group of groups) {
      // A folded group inside of a folded one hides nothing more.
      if (group.last >= total || group.first < end || !isFolded(group)) continue;
      this.#hidden.push({ from: group.first + 1, to: group.last + 1, before: count });
      count += group.last - group.first;
      end = group.last + 1;
    }
    this.rows = total - count;
  }

  /** The line that a row shows. */
  lineAt(row: number): number {
    const last = this.#lastWhere((hidden) => hidden.from - hidden.before <= row);
    return last ? row + last.before + (last.to - last.from) : row;
  }

  /** The row that shows a line, or the heading of the group in which it is hidden. */
  rowOf(line: number): number {
    const last = this.#lastWhere((hidden) => hidden.from <= line);
    if (!last) return line;
    const shown = line < last.to ? last.from - 1 : line - (last.to - last.from);
    return shown - last.before;
  }

  #lastWhere(isBefore: (hidden: HiddenLines) => boolean): HiddenLines | undefined {
    let [low, high] = [0, this.#hidden.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const hidden = this.#hidden[middle];
      if (hidden && isBefore(hidden)) low = middle + 1;
      else high = middle;
    }
    return this.#hidden[low - 1];
  }
}

/** `2026-01-31T12:00:00.5Z`, `2026-01-31 12:00:00` or `12:00:00`, perhaps in brackets, at the beginning of a line. */
const TIME =
  /^(?:\u001b\[[0-9;]*m)*\[?(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d):(\d\d):(\d\d(?:[.,]\d{1,9})?)(Z|[+-]\d\d:?\d\d)?/;

/** The time at the beginning of a line in seconds: since 1970, or of the day. Null if it has none. */
export function lineSeconds(line: string): number | null {
  const match = TIME.exec(line);
  if (!match) return null;
  const [, date, hours, minutes, seconds] = match;
  const day = date === undefined ? 0 : Date.parse(`${date}T00:00:00Z`) / 1000;
  return day + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds?.replace(",", "."));
}
