import { ExchangeError } from '../../lib/exchange/errors.ts';
import { configurationError } from '../errors.ts';

/** @throws CliError of a refusal, whose message says what to do next. */
export function unlessRefused<Result>(result: Result | ExchangeError): Result {
  if (result instanceof ExchangeError) throw configurationError(result.message, { cause: result });
  return result;
}
