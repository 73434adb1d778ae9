;; Vectors of 8 MiB, and a list of 6 million conses.
(let* ((vectors (loop for k below 40
                      collect (let ((v (make-array (expt 2 20) :element-type 'double-float)))
                                (dotimes (i (expt 2 20) v) (setf (aref v i) (float (mod (* i (1+ k)) 1009) 1d0))))))
       (items (loop for i below 6000000 collect (mod (* i 7919) 1000003)))
       (sum 0d0))
  (dolist (v vectors) (incf sum (reduce #'+ v)))
  (format t "~a ~a ~a~%" sum (reduce #'+ items) (length (remove-if #'evenp items))))
