/** The latest message for screen readers; a live region of the page shows it. */
export class Announcer {
  message = $state.raw("");

  announce(message: string): void {
    this.message = message;
  }
}
