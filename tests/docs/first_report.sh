#!/bin/sh
# first_report.sh SOURCE_DIR: README's first command on fewer tokens, until there is a report.
set -e
cd "$1"
rm -rf build/first-report
cmake/bootstrap.sh study all --quick --layers 3 --fit-tokens 2000 --gate-tokens 2000 \
  --select-tokens 1000 --report-tokens 4000 --greedy none --quiet --out build/first-report
test -s build/first-report/report.html
