#!/bin/sh
# Writes docs/command-line.md from what the program says of itself; a test compares. To renew it:
#   cmake/command_line.sh build/release/examples/study/study >docs/command-line.md
set -e
study=$1

# help TITLE COMMAND…: a section with what `study COMMAND… --help` prints.
help() {
  printf '\n## %s\n\n```text\n' "$1"
  shift
  "$study" "$@" --help | sed 's/ *$//' | cat -s
  printf '```\n'
}

cat <<'END'
# Command line

What `study --help` and `study COMMAND --help` print, made by `cmake/command_line.sh` and held to the program by a test. A value after `=` is the default, or
it stands in brackets at the end of the line; `…` takes several, with commas or one after the other. [results.md](results.md) has what each command writes,
[errors.md](errors.md) what it may say.
END
help 'study'
for command in $("$study" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
  help "study $command" "$command"
done
