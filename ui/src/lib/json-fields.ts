// Reading fields of JSON that may have any shape.

export type Json = Record<string, unknown>;

export const text = (value: unknown): string => (typeof value === "string" ? value : "");
export const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;
export const object = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
