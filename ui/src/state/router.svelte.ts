import { address, parseRoute, parseTrial, type Route } from "../lib/router";
import { isSameTrial, linkPrefix, scopeOf, type Scope, type Trial } from "../lib/scope";

/** The current route and scope, in sync with the address bar. */
export class RouterState {
  route = $state.raw<Route>(parseRoute(location.hash));
  scope = $state.raw<Scope>(scopeOf(parseTrial(location.hash)));

  /** The run in the address; undefined means the current one. */
  get run(): string | undefined {
    return "run" in this.route ? this.route.run : undefined;
  }

  get trial(): Trial | undefined {
    return this.scope.trial;
  }

  /** Identifies the scope: views are created again when it changes. */
  get scopeKey(): string {
    return linkPrefix(this.scope);
  }

  link(route: Route): string {
    return address(this.scope, route);
  }

  go(route: Route): void {
    location.hash = this.link(route);
  }

  /** Changes the address without a new history entry. */
  replace(route: Route): void {
    history.replaceState(null, "", this.link(route));
    this.route = route;
  }

  /** Reads the address bar. */
  update(): void {
    const trial = parseTrial(location.hash);
    this.route = parseRoute(location.hash);
    if (!isSameTrial(trial, this.trial)) this.scope = scopeOf(trial);
  }

  /** Sets the trial that `latest` means now. */
  resolveLatest(id: string): void {
    const { trial, resolved } = this.scope;
    if (trial?.id === "latest" && resolved?.id !== id) this.scope = { trial, resolved: { ...trial, id } };
  }
}
