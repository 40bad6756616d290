#!/bin/sh
# headers_alone.sh COMPILER INCLUDE_DIR HEADERS FLAGS FOLDER: compiles each header of the list
# HEADERS alone, twice included, with warnings as errors. FLAGS is a file of compiler flags; all are
# absolute paths.
#
# Clang reads what many headers include, the hubs, from precompiled headers in FOLDER. A header is
# compiled behind a hub only if it includes it, itself or through others and under no condition: it
# then sees no more than it would without.
set -eu
compiler=$1 include_dir=$2 headers=$3 flags=$4 folder=$5
command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed"; exit 77; }
case $compiler in *clang*) limit=-ferror-limit=3 hubs=48 ;; *) limit=-fmax-errors=3 hubs=0 ;; esac
rm -rf "$folder"
mkdir -p "$folder"

# Lines "HEADER HUB KIND", HUB the largest that HEADER includes or "-". Hubs are chosen one by one,
# each to save the most text; they are compiled whole, since clang 14 loses macros behind a chain.
choose_hubs='
function include_all(header, own,    i) {
  if (seen[header] == own) return
  seen[header] = own
  within[own, header] = 1
  size[own] += lines[header]
  for (i = 1; i <= includes[header]; ++i) include_all(include[header, i], own)
}
function saving(hub,    i, sum, header) {
  sum = -size[hub]
  for (i = 1; i <= count; ++i) {
    header = names[i]
    if (header != hub && ((header, hub) in within) && size[hub] > size[best[header]])
      sum += size[hub] - size[best[header]]
  }
  return sum
}
function weight(other) { return other ~ /json/ ? 60000 : other ~ /Eigen|xtensor/ ? 15000 : 3000 }
FNR == NR { names[++count] = $1; is_ours[$1] = 1; next }
FNR == 1 { conditions = 0 }
{ ++lines[FILENAME] }
/^# *if/ { ++conditions }
/^# *endif/ { --conditions }
/^#include [<"]/ && conditions == 0 {
  name = substr($2, 2, length($2) - 2)
  if (!(name in is_ours) && !(name in lines)) lines[name] = weight(name)
  include[FILENAME, ++includes[FILENAME]] = name
}
END {
  for (i = 1; i <= count; ++i) include_all(names[i], names[i])
  for (h = 1; h <= hubs; ++h) {
    hub = ""
    most = 0
    for (i = 1; i <= count; ++i) {
      own = (names[i] in is_hub) ? 0 : saving(names[i])
      if (own > most) { hub = names[i]; most = own }
    }
    if (hub == "") break
    is_hub[hub] = 1
    for (i = 1; i <= count; ++i)
      if (names[i] != hub && ((names[i], hub) in within) && size[hub] > size[best[names[i]]])
        best[names[i]] = hub
    print hub, "-", "hub"
  }
  for (i = 1; i <= count; ++i)
    if (!(names[i] in is_hub)) print names[i], best[names[i]] == "" ? "-" : best[names[i]], "leaf"
}'
(cd "$include_dir" && xargs awk -v hubs="$hubs" "$choose_hubs" "$headers" <"$headers") >"$folder/plan"

# HEADER HUB KIND: a hub leaves its precompiled header, named after it.
check='header=$1 hub=$2 kind=$3
precompiled() { printf "%s/%s.pch" "$folder" "$(printf %s "$1" | tr / .)"; }
set -- -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror \
  "$limit" -I"$include_dir" @"$flags"
case $compiler in *clang*) set -- "$@" -fpch-instantiate-templates ;; esac
[ "$hub" = - ] || set -- "$@" -include-pch "$(precompiled "$hub")"
if [ "$kind" = hub ]; then set -- "$@" -x c++-header -o "$(precompiled "$header")"; else
  set -- "$@" -fsyntax-only -x c++; fi
printf "#include \"%s\"\n#include \"%s\"\n" "$header" "$header" | "$compiler" "$@" - ||
  { echo "in $header"; exit 1; }'
export compiler include_dir flags folder limit
grep 'hub$' "$folder/plan" | xargs -r -L 1 -P 2 sh -c "$check" sh || exit 1
grep 'leaf$' "$folder/plan" | xargs -r -L 1 -P 2 sh -c "$check" sh || exit 1
rm -f "$folder"/*.pch
echo "$(wc -l <"$headers") headers compile alone with $compiler"
