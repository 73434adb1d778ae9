#!/usr/bin/env bash
# Collections while threads start, each program in processes of its own: start.sh [TIMES [LISP-FILE]], 1000 of each by
# default; none may fail. LISP-FILE is one more program, which prints OK.
set -euo pipefail
cd "$(dirname "$0")/.."
times=${1:-1000}
lisp=${LISP:-target/release/largesse}
folder=$(mktemp -d -p target)
trap 'rm -rf "$folder"' EXIT
work='(defun work (n) (let (r) (dotimes (i n) (setq r (copy-seq (list 1 2 3 4 5 6 7 8)))) (length r)))
(defun all (workers) (mapcar (function sys:wait-thread) workers))
(defun begin (count) (let (l) (dotimes (i count l) (push (sys:thread (function work) 5000) l))))
(defun ok (results wanted) (format t "~a" (if (equal results wanted) "OK" results)))'

echo "$work (sys:make-thread 4) (sys:gc) (ok (all (begin 4)) '(8 8 8 8))" > "$folder/collection-after.l"
# Workers collect at once, one while the next is made.
echo "$work (defun collect () (sys:gc) (work 1000))
(ok (let (l) (dotimes (i 4) (sys:make-thread 1) (push (sys:thread (function collect)) l)) (all l)) '(8 8 8 8))" > "$folder/collection-inside.l"
# Two are at work, and collect, while four more are made and begin.
echo "$work (sys:make-thread 2) (setq *first* (begin 2))
(sys:make-thread 4) (sys:gc) (ok (append (all (begin 4)) (all *first*)) '(8 8 8 8 8 8))" > "$folder/threads-beside.l"
# A thread makes the others.
echo "$work (sys:make-thread 1)
(ok (sys:wait-thread (sys:thread #'(lambda () (sys:make-thread 4) (sys:gc) (all (begin 4))))) '(8 8 8 8))" > "$folder/thread-makes-threads.l"
[ $# -lt 2 ] || cp "$2" "$folder"

for program in "$folder"/*.l; do
    name=$(basename "$program" .l)
    for time in $(seq "$times"); do
        case $((time % 4)) in 0) sync=mutex ;; 1) sync=rwlock ;; *) sync=safepoint ;; esac
        status=0
        said=$(timeout 60 "$lisp" lisp --sync $sync "$program" 2>&1) || status=$?
        [ "$status ${said//[[:space:]]/}" = "0 OK" ] || {
            echo "start: $name, $time of $times, --sync $sync: exit $status: $said" >&2
            exit 1
        }
    done
    echo "$name: $times of $times"
done
