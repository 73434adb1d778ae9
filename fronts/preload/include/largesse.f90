! Calls from largesse.h for Fortran: the marks of compute cores, and the number of threads of reductions. Compile this
! file before those of the program, and use the module.
!
!     use largesse
!     do step = 1, steps
!        call tune_begin('solve')
!        call solve()
!        call tune_end('solve')
!     end do
!
! The module looks the library up instead of linking it. Where it is not loaded (no `largesse run`), calls do nothing.
module largesse
   use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funptr, c_int, c_null_char, &
      c_null_ptr, c_ptr
   implicit none
   private
   public :: tune_begin, tune_end, set_threads

   ! Values of `status`, as in largesse.h; without the library, calls return largesse_not_supported.
   integer, parameter, public :: largesse_ok = 0, largesse_bad_argument = -1, largesse_not_supported = -2

   abstract interface
      function marking(id) bind(c) result(status)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: id(*)
         integer(c_int) :: status
      end function marking
   end interface

   abstract interface
      function setting(number) bind(c) result(status)
         import :: c_int
         integer(c_int), value :: number
         integer(c_int) :: status
      end function setting
   end interface

   interface
      function dlsym(handle, name) bind(c, name='dlsym') result(found)
         import :: c_char, c_funptr, c_ptr
         type(c_ptr), value :: handle
         character(kind=c_char), intent(in) :: name(*)
         type(c_funptr) :: found
      end function dlsym
   end interface

contains

   ! Marks the beginning of the compute core `id`, for which far memory chooses the size of transfers.
   subroutine tune_begin(id, status)
      character(len=*), intent(in) :: id
      integer, intent(out), optional :: status
      call mark('largesse_tune_begin', id, status)
   end subroutine tune_begin

   ! Marks the end of the compute core `id`.
   subroutine tune_end(id, status)
      character(len=*), intent(in) :: id
      integer, intent(out), optional :: status
      call mark('largesse_tune_end', id, status)
   end subroutine tune_end

   ! Sets the number of threads of reductions of long vectors; 0: the value of OMP_NUM_THREADS, else all processors.
   subroutine set_threads(number, status)
      integer, intent(in) :: number
      integer, intent(out), optional :: status
      procedure(setting), pointer :: call_it
      type(c_funptr) :: found
      integer :: outcome
      outcome = largesse_not_supported
      found = dlsym(c_null_ptr, 'largesse_set_threads' // c_null_char)
      if (c_associated(found)) then
         call c_f_procpointer(found, call_it)
         outcome = call_it(int(number, c_int))
      end if
      if (present(status)) status = outcome
   end subroutine set_threads

   subroutine mark(name, id, status)
      character(len=*), intent(in) :: name, id
      integer, intent(out), optional :: status
      procedure(marking), pointer :: call_it
      type(c_funptr) :: found
      integer :: outcome
      outcome = largesse_not_supported
      found = dlsym(c_null_ptr, name // c_null_char) ! NULL: RTLD_DEFAULT of Linux
      if (c_associated(found)) then
         call c_f_procpointer(found, call_it)
         outcome = call_it(trim(id) // c_null_char)
      end if
      if (present(status)) status = outcome
   end subroutine mark
end module largesse
