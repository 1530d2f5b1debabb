! Calls of a Fortran program, by the names of `mpif.h` and of the module `mpi`.
program check
  use mpi
  implicit none
  integer, parameter :: count = 100
  integer :: ierror, rank, ranks, round, i, from
  integer :: mine(count)
  integer, allocatable :: everyones(:), counts(:), starts(:)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  allocate(everyones(count * ranks), counts(ranks), starts(ranks))
  do i = 1, ranks
    counts(i) = mod(i, count)
    starts(i) = (i - 1) * count
  end do
  do round = 1, 20
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    do i = 1, count
      mine(i) = rank * 1000000 + round * 1000 + i
    end do
    everyones = -1
    call MPI_Allgather(mine, count, MPI_INTEGER, everyones, count, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call compare(counts * 0 + count)
    everyones = -1
    everyones(rank * count + 1:(rank + 1) * count) = mine
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, everyones, count, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call compare(counts * 0 + count)
    everyones = -1
    call MPI_Allgatherv(mine, counts(rank + 1), MPI_INTEGER, everyones, counts, starts, MPI_INTEGER, &
                        MPI_COMM_WORLD, ierror)
    call compare(counts)
  end do
  if (rank == 0) print '(a,i0,a)', 'check: ', ranks, ' ranks, all as it should be'
  call MPI_Finalize(ierror)

contains

  subroutine compare(lengths)
    integer, intent(in) :: lengths(:)
    do from = 0, ranks - 1
      do i = 1, lengths(from + 1)
        if (everyones(from * count + i) /= from * 1000000 + round * 1000 + i) then
          print *, 'check: a wrong value of', from, 'at', i
          call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
        end if
      end do
    end do
  end subroutine compare
end program check
