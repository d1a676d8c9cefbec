// The scope of a page: the repository that the server shows, or one trial of an evaluation. It is the prefix of every
// link and of every API path.

export interface Trial {
  case: string;
  /** The name of the trial's folder, or `latest`. */
  id: string;
}

export interface Scope {
  /** The trial in the address bar. */
  readonly trial?: Trial;
  /** The trial that `latest` means now. Links lead to it, so that they still work when a newer one starts. */
  readonly resolved?: Trial;
}

/** No trial: the repository, or the evaluation as a whole. */
export const ROOT_SCOPE: Scope = {};

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;

export function isTrial(trial: Trial): boolean {
  return NAME.test(trial.case) && NAME.test(trial.id);
}

export function scopeOf(trial: Trial | undefined): Scope {
  return trial ? { trial } : ROOT_SCOPE;
}

export function isSameTrial(a: Trial | undefined, b: Trial | undefined): boolean {
  return a?.case === b?.case && a?.id === b?.id;
}

/** `#/trial/CASE/ID` */
export function trialAddress(trial: Trial): string {
  return `#/trial/${trial.case}/${trial.id}`;
}

/** Where the address of the scope's overview starts. */
export function homePrefix(scope: Scope): string {
  return scope.trial ? trialAddress(scope.trial) : "#";
}

/** Where the addresses of everything else in the scope start. */
export function linkPrefix(scope: Scope): string {
  const trial = scope.resolved ?? scope.trial;
  return trial ? trialAddress(trial) : "#";
}

/** Where the scope's API paths start. */
export function apiPrefix(scope: Scope): string {
  return scope.trial ? `/trial/${scope.trial.case}/${scope.trial.id}` : "";
}
