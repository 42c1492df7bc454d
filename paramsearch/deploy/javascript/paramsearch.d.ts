/** A file, a value or a platform that cannot be used.  Nothing may be sent then. */
export class Refused extends Error {}

/** Random bits: peek returns the next 32, the first as the most significant; skip uses some up. */
export interface BitSource {
  peek(): number;
  skip(bits: number): void;
}

/** The cryptographic generator of the platform, which every deployment must use. */
export class SystemBits implements BitSource {
  peek(): number;
  skip(bits: number): void;
}

/** A parameter file that was checked; only load makes one. */
export interface ParameterFile {
  readonly document: any;
  readonly maxValue: number;
  readonly dimension: number;
  readonly alphabet: readonly number[];
  /** Of one packed message. */
  readonly bits: number;
}

/** Reads and checks a parameter file; rejects with Refused.  publicKey is PEM, signature base64. */
export function load(
  content: string | ArrayBuffer | Uint8Array,
  signed?: { signature: string; publicKey: string },
): Promise<ParameterFile>;

export interface Range {
  low?: number;
  high?: number;
  /** Move values outside to the nearest end. */
  clip?: boolean;
}

export class Randomizer {
  constructor(file: ParameterFile, source?: BitSource, options?: { notPrivate?: boolean });
  readonly file: ParameterFile;
  /**
   * The symbols to send, each by itself, until it is acknowledged; value is a number, or for vectors
   * [coordinate, number].  Who is missing must not depend on the noise: never drop symbols because
   * there are many, and never draw again.
   */
  randomize(value: number | [number, number]): number[];
  randomizeReal(value: number, range?: Range): number[];
  round(value: number, range?: Range): number;
  message(symbol: number): [coordinate: number, value: number];
  pack(symbols: number[]): Uint8Array;
}
