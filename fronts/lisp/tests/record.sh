#!/usr/bin/env bash
# Asks EusLisp (Debian: euslisp 9.27) for the answers in */answers to the forms in */cases, one form per line. jskeus
# (Debian: jskeus 1.2.4) answers those about its own functions.
set -euo pipefail
cd "$(dirname "$0")"
for cases in */cases/*.l; do
    chapter=$(basename "$cases" .l)
    answers=$(dirname "$(dirname "$cases")")/answers/$chapter.txt
    lisp=eusgl name="EusLisp 9.27"
    [ "$chapter" != irteus ] || { lisp=irteusgl name="jskeus 1.2.4"; }
    echo "# $chapter, answered by $name" >"$answers"
    CASES=$cases EUSDIR=/usr/share/euslisp timeout 60 "$lisp" record.l 2>/dev/null | sed -n 's/^=> //p' >>"$answers" || true
    forms=$(grep -c "" "$cases") lines=$(grep -vc "^# " "$answers")
    [ "$forms" = "$lines" ] || echo "$cases: $forms forms, $lines answers" >&2
done
