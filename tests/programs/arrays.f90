! Allocates, grows and frees arrays in the ways of Fortran programs.
program arrays
  implicit none
  real(8), allocatable :: a(:,:), b(:,:), c(:,:), v(:)
  real(4), allocatable :: s(:)
  integer, allocatable :: list(:)
  character(len=:), allocatable :: text
  integer :: i, j, status, n
  do n = 100, 700, 200
    allocate(a(n, n), b(n, n), c(n, n))
    do j = 1, n
      do i = 1, n
        a(i, j) = 1d0 / (i + j - 1)
        b(i, j) = mod(i * 7 + j * 13, 101) / 101d0
      end do
    end do
    c = matmul(a, b)
    print '(i5, 3es25.16)', n, sum(c), c(n, 1), sum(transpose(c) * b)
    deallocate(a, b, c)
  end do
  ! The list grows by assignment, and by move_alloc.
  list = [integer ::]
  do i = 1, 60
    list = [list, (j, j = 1, 5000)]
  end do
  print *, size(list), sum(int(list, 8))
  allocate(v(100000))
  v = 1.5d0
  do i = 1, 5
    call grow(v)
    print '(i10, es25.16)', size(v), sum(v)
  end do
  allocate(s(2000000))
  call random_fill(s)
  print '(es16.8)', sum(real(s, 8))
  text = repeat('ab', 1000000)
  print *, len(text), text(1000001:1000002)
  ! An allocation that fails returns a status and does not end the program.
  allocate(c(5000000, 5000000), stat=status)
  print *, status /= 0, allocated(c)
  write(0, *) 'to stderr'
  stop 9
contains
  subroutine grow(x)
    real(8), allocatable, intent(inout) :: x(:)
    real(8), allocatable :: y(:)
    allocate(y(2 * size(x)))
    y(:size(x)) = x
    y(size(x) + 1:) = x * 2
    call move_alloc(y, x)
  end subroutine
  subroutine random_fill(x)
    real(4), intent(out) :: x(:)
    integer(8) :: state
    integer :: k
    state = 12345
    do k = 1, size(x)
      state = mod(state * 1103515245_8 + 12345_8, 2147483648_8)
      x(k) = real(state) / 2147483648.0
    end do
  end subroutine
end program
