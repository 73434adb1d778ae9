! Means of neighbours on two arrays of 275 MiB, six times.
program stencil
    implicit none
    integer, parameter :: n = 6000
    real(8), allocatable :: now(:, :), next(:, :)
    integer :: i, j, step
    allocate (now(n, n), next(n, n))
    do j = 1, n
        do i = 1, n
            now(i, j) = mod(i * 31 + j * 17, 1000)
        end do
    end do
    next = now
    do step = 1, 6
        do j = 2, n - 1
            do i = 2, n - 1
                next(i, j) = 0.25d0 * (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1))
            end do
        end do
        now = next
    end do
    print '(es24.16, es24.16)', sum(now), now(n / 2, n / 2)
end program
