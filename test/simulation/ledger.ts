/** Who owns which address, as their owners know it: the truth that the table is held against. */
export class Ledger {
  readonly violations: string[] = [];
  readonly history: string[] = [];
  readonly #nowMs: () => number;
  readonly #owners = new Map<string, Map<string, number>>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  note(line: string): void {
    this.history.push(`${new Date(this.#nowMs()).toISOString().slice(11, 23)} ${line}`);
  }

  violate(line: string): void {
    this.note(`WRONG: ${line}`);
    this.violations.push(line);
  }

  /** @param untilMs end of a hold; a Service has none. */
  own(address: string, owner: string, untilMs = Number.POSITIVE_INFINITY): void {
    this.note(`${owner} has ${address}`);
    const others = this.ownersOf(address);
    if (others.length > 0) this.violate(`${address} is given to ${owner} and belongs to ${others.join(', ')}`);
    const owners = this.#owners.get(address) ?? new Map<string, number>();
    this.#owners.set(address, owners.set(owner, untilMs));
  }

  end(address: string, owner: string): void {
    if (this.#owners.get(address)?.delete(owner)) this.note(`${owner} lets go of ${address}`);
  }

  /** Holds that a restored table does not know. */
  endHolds(): void {
    for (const owners of this.#owners.values()) {
      for (const [owner, untilMs] of owners) if (Number.isFinite(untilMs)) owners.delete(owner);
    }
  }

  ownersOf(address: string): string[] {
    return [...(this.#owners.get(address) ?? [])]
      .filter(([, untilMs]) => untilMs > this.#nowMs())
      .map(([owner]) => owner);
  }

  owned(): string[] {
    return [...this.#owners.keys()].filter((address) => this.ownersOf(address).length > 0);
  }
}
