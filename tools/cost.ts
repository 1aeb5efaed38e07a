// Prints what a stack costs in a month: npm run cost -- --help
import { costAnswer } from './cost-report.ts';

const { text, exitCode } = costAnswer(process.argv.slice(2));
(exitCode === 0 ? console.log : console.error)(text);
process.exitCode = exitCode;
