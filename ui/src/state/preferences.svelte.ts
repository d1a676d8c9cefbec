const NEXT_THEME = { system: "light", light: "dark", dark: "system" } as const;

type Theme = keyof typeof NEXT_THEME;

/** The user's settings, kept in the browser's storage. */
export class Preferences {
  theme = $state.raw<Theme>((localStorage.getItem("theme") as Theme | null) ?? "system");
  hasShortcuts = $state.raw(localStorage.getItem("keys") !== "off");

  cycleTheme(): void {
    this.theme = NEXT_THEME[this.theme];
    localStorage.setItem("theme", this.theme);
  }

  setShortcuts(isOn: boolean): void {
    this.hasShortcuts = isOn;
    localStorage.setItem("keys", isOn ? "on" : "off");
  }
}
