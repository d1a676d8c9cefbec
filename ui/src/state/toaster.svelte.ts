const SHOWN_MS = 3000;

/** A short confirmation at the bottom of the page, such as that something was copied. */
export class Toaster {
  text = $state.raw("");
  #timer: ReturnType<typeof setTimeout> | undefined;

  show(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.text = ""), SHOWN_MS);
  }
}
