;; Runs copy-seq of benches/programs/lisp in SBCL. TIMES=2000 THREADS=2 sbcl --script copy-seq.fasl

(defun copies (from times)
  (declare (list from) (fixnum times) (optimize speed))
  (let (copy)
    (dotimes (i times copy) (setq copy (copy-seq from)))))

(defun weighed (numbers)
  (loop for number in numbers for place from 1 sum (* place number)))

(defun setting (name)
  (let ((text (sb-ext:posix-getenv name))) (if text (parse-integer text) 1)))

(defun microseconds (time) (round (* 1000000 time) internal-time-units-per-second))

(let* ((list (let (l) (dotimes (i 1000 l) (push i l))))
       (times (setting "TIMES"))
       (collecting (progn (sb-ext:gc :full t) sb-ext:*gc-run-time*))
       (begin (get-internal-real-time))
       (workers (loop repeat (setting "THREADS") collect (sb-thread:make-thread #'copies :arguments (list list times))))
       (results (mapcar #'sb-thread:join-thread workers))
       (end (get-internal-real-time)))
  (format t "{\"test\":\"copy-seq\",\"seconds\":~de-6,\"gc_seconds\":~de-6,\"answer\":[~{~d~^,~}],\"bits\":\"\"}~%"
          (microseconds (- end begin)) (microseconds (- sb-ext:*gc-run-time* collecting)) (mapcar #'weighed results))
  (format t "{\"peak_kb\":~d,\"hugetlb_kb\":0,\"about\":\"~a\"}~%"
          (nth-value 3 (sb-unix:unix-getrusage sb-unix:rusage_self)) (lisp-implementation-version)))
