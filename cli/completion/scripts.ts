export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** What a shell has to run once: it asks `kbctl __complete` for each word. */
export const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_kbctl() {
  local IFS=$'\\n'
  COMPREPLY=($(kbctl __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _kbctl kbctl
`,
  zsh: `#compdef kbctl
_kbctl() {
  local -a found
  local line
  for line in "\${(@f)$(kbctl __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  (( \${#found} )) && _describe kbctl found || _files
}
compdef _kbctl kbctl
`,
  fish: `complete -c kbctl -a '(kbctl __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};
