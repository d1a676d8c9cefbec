// Where lists were scrolled to, so that Back, a reload and a new iteration keep the reader's place.

const KEY = "places";
const PLACES_MAX = 100;

const places = new Map<string, number>(read());

function read(): [string, number][] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as [string, number][];
  } catch {
    return [];
  }
}

if (typeof addEventListener === "function")
  addEventListener("pagehide", () => {
    sessionStorage.setItem(KEY, JSON.stringify([...places].slice(-PLACES_MAX)));
  });

export function placeOf(key: string): number | undefined {
  return places.get(key);
}

export function keepPlace(key: string, top: number): void {
  places.delete(key);
  places.set(key, top);
}
