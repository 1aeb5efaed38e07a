import { describe, expect, test } from '@jest/globals';
import { HELP, parseStartOptions } from '../../local/start-options.ts';

const named = ['--kubeconfig', 'k.yml', '-f', 'c.yml'];
const real = { specFile: 'c.yml', kubeconfigFile: 'k.yml' };

describe('the command line of npm start', () => {
  test.each([
    ['nothing asks for the embedded cluster', [], { verbose: false }],
    ['--verbose is for either', ['--verbose'], { verbose: true }],
    ['a kubeconfig and a spec name a cluster', named, { verbose: false, real }],
    ['--file is -f', ['--file', 'c.yml', '--kubeconfig=k.yml'], { verbose: false, real }],
    [
      'a context of it may be chosen',
      [...named, '--context', 'there'],
      { verbose: false, real: { ...real, context: 'there' } },
    ],
    [
      'the table may be kept elsewhere',
      [...named, '--data', 'd'],
      { verbose: false, real: { ...real, dataFolder: 'd' } },
    ],
  ])('%s', (_, words, run) => {
    expect(parseStartOptions(words)).toEqual({ run });
  });

  test.each([[['--help']], [['-h']], [[...named, '-h']]])('%j asks for help', (words) => {
    expect(parseStartOptions(words)).toEqual({ help: HELP });
  });

  test.each([
    ['a spec without a kubeconfig', ['-f', 'c.yml'], /^A cluster is named by its kubeconfig: add --kubeconfig FILE\.$/],
    ['a kubeconfig without a spec', ['--kubeconfig', 'k.yml'], /^A cluster needs its spec: add -f cluster\.yml/],
    ['a context of nothing', ['--context', 'there'], /^--context goes with --kubeconfig FILE and -f cluster\.yml\.$/],
    ['a folder for nothing', ['--data', 'd'], /^--data goes with --kubeconfig FILE and -f cluster\.yml\.$/],
    ['an option that does not exist', ['--kubconfig', 'k.yml'], /--kubconfig/],
    ['an option without its value', ['--kubeconfig'], /--kubeconfig/],
    ['a word too many', ['cluster.yml'], /cluster\.yml/],
  ])('%s makes no sense, which is told in one line', (_, words, says) => {
    const asked = parseStartOptions(words);
    expect(asked).toEqual({ usage: expect.stringMatching(says) });
    expect('usage' in asked && asked.usage).not.toContain('\n');
  });
});
