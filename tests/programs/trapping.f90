! Computes a norm that does not overflow although the squares do. Compiled with -ffpe-trap=overflow.
program trapping
   use, intrinsic :: iso_c_binding, only: c_double, c_ptrdiff_t, c_size_t
   implicit none
   interface
      function dnrm2(n, x, incx) bind(c, name='largesse_dnrm2') result(norm)
         import :: c_double, c_ptrdiff_t, c_size_t
         integer(c_size_t), value :: n
         real(c_double), intent(in) :: x(*)
         integer(c_ptrdiff_t), value :: incx
         real(c_double) :: norm
      end function dnrm2
   end interface
   print '(es8.1)', dnrm2(2_c_size_t, [3.0e300_c_double, 4.0e300_c_double], 1_c_ptrdiff_t)
end program trapping
