#!/bin/sh
# headers_alone.sh COMPILER INCLUDE_DIR HEADERS FLAGS: compiles each header of the list HEADERS
# alone, twice included, with warnings as errors. FLAGS is a file of compiler flags.
compiler=$1 include_dir=$2 headers=$3 flags=$4
case $compiler in *clang*) limit=-ferror-limit=3 ;; *) limit=-fmax-errors=3 ;; esac
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }

check='printf "#include \"%s\"\n#include \"%s\"\n" "$1" "$1" |
  "$0" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
    -Werror "$4" -I"$2" @"$3" -x c++ - || { echo "in $1"; exit 1; }'
xargs -P 2 -I '{}' sh -c "$check" "$compiler" '{}' "$include_dir" "$flags" "$limit" <"$headers" || exit 1
echo "$(wc -l <"$headers") headers compile alone with $compiler"
