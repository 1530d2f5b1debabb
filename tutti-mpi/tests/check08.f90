! Barriers and gathers by the module `mpi_f08`.
program check08
  use mpi_f08
  implicit none
  integer :: rank, ranks, round, i
  integer, allocatable :: everyones(:)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate(everyones(ranks))
  do round = 1, 20
    call MPI_Barrier(MPI_COMM_WORLD)
    everyones = -1
    call MPI_Allgather(rank * 1000 + round, 1, MPI_INTEGER, everyones, 1, MPI_INTEGER, MPI_COMM_WORLD)
    do i = 1, ranks
      if (everyones(i) /= (i - 1) * 1000 + round) call MPI_Abort(MPI_COMM_WORLD, 3)
    end do
  end do
  if (rank == 0) print '(a,i0,a)', 'check: ', ranks, ' ranks, all as it should be'
  call MPI_Finalize()
end program check08
