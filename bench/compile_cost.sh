#!/usr/bin/env bash
# What including the library costs at compile time, in seconds of the processor, best of three:
#   core     a program that includes wanamaker/core.hpp, beyond an empty program
#   hello    the first complete program of README.md, compiled without optimisation and with -O2;
#            and where wanamaker::compiled is linked
#   headers  with --headers: each of include/wanamaker alone, without optimisation, the dearest first
# Usage: bench/compile_cost.sh [--headers] [COMPILER [FLAGS…]], default c++
set -euo pipefail
cd "$(dirname "$0")/.."
headers=no
[ "${1:-}" != --headers ] || { headers=yes; shift; }
compiler=${1:-c++}
[ $# -eq 0 ] || shift
flags="-std=c++20 -Iinclude $(pkg-config --cflags eigen3 2>/dev/null || true) $*"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# seconds FLAGS FILE: the best of three compilations.
seconds() {
  local TIMEFORMAT=%U
  for _ in 1 2 3; do
    # shellcheck disable=SC2086
    { time $compiler $flags $1 -c "$2" -o "$work/out.o" 2>"$work/log"; } 2>&1 ||
      { cat "$work/log" >&2; exit 1; }
  done | sort -n | head -n 1
}

echo 'int main() {}' >"$work/empty.cpp"
printf '#include "wanamaker/core.hpp"\nint main() {}\n' >"$work/core.cpp"
empty=$(seconds -O0 "$work/empty.cpp")
core=$(seconds -O0 "$work/core.cpp")
echo "core $(awk "BEGIN { printf \"%.2f\", $core - $empty }") (empty program $empty)"

[ -e README.md ] || exit 0
# The first fenced C++ snippet that has a main.
awk '/^```cpp/ { inside = 1; text = ""; next }
     inside && /^```/ { inside = 0; if (text ~ /int main\(/) { printf "%s", text; exit } }
     inside { text = text $0 "\n" }' README.md >"$work/hello.cpp"
echo "hello $(seconds -O0 "$work/hello.cpp") at -O0, $(seconds -O2 "$work/hello.cpp") at -O2," \
  "with wanamaker::compiled $(seconds "-O0 -DWANAMAKER_COMPILED" "$work/hello.cpp")"

[ "$headers" = yes ] || exit 0
for header in $(cd include && find wanamaker -name '*.hpp' ! -path '*/third_party/*'); do
  # Headers of kernels are for nvcc.
  ! grep -q cuda_runtime "include/$header" || continue
  echo "#include \"$header\"" >"$work/header.cpp"
  echo "$(awk "BEGIN { printf \"%.2f\", $(seconds -O0 "$work/header.cpp") - $empty }") $header"
done | sort -rn
