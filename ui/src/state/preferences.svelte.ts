const NEXT_THEME = { system: "light", light: "dark", dark: "system" } as const;

type Theme = keyof typeof NEXT_THEME;

/** The user's settings, kept in the browser's storage. */
export class Preferences {
  theme = $state.raw<Theme>((localStorage.getItem("theme") as Theme | null) ?? "system");
  hasShortcuts = $state.raw(localStorage.getItem("keys") !== "off");
  isDiffSplit = $state.raw(localStorage.getItem("diff") === "split" && innerWidth > 900);
  isWrapped = $state.raw((localStorage.getItem("wrap") ?? "on") === "on");
  hasLogTimes = $state.raw(localStorage.getItem("log-times") === "on");

  setDiffSplit(isOn: boolean): void {
    this.isDiffSplit = isOn;
    localStorage.setItem("diff", isOn ? "split" : "unified");
  }

  setWrapped(isOn: boolean): void {
    this.isWrapped = isOn;
    localStorage.setItem("wrap", isOn ? "on" : "off");
  }

  setLogTimes(isOn: boolean): void {
    this.hasLogTimes = isOn;
    localStorage.setItem("log-times", isOn ? "on" : "off");
  }

  cycleTheme(): void {
    this.theme = NEXT_THEME[this.theme];
    localStorage.setItem("theme", this.theme);
  }

  setShortcuts(isOn: boolean): void {
    this.hasShortcuts = isOn;
    localStorage.setItem("keys", isOn ? "on" : "off");
  }
}
