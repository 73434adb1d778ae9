include 'largesse.f90'

! Marks its compute core. Prints the status of each mark, and a sum that is the same in all runs.
program marked
   use largesse
   implicit none
   real(8), allocatable :: grid(:, :)
   integer :: step, j, began, ended, wrong, threads
   allocate (grid(1000, 2000))
   grid = 1
   do step = 1, 5
      call tune_begin('sweep  ', began)
      do j = 2, 2000
         grid(:, j) = grid(:, j - 1) * 0.5d0 + j
      end do
      call tune_end('sweep', ended)
   end do
   call set_threads(2, threads)
   call tune_end('never begun', wrong)
   call tune_begin('without status')
   call tune_end('without status')
   print '(4i3, f20.6)', began, ended, wrong, threads, sum(grid)
end program marked
