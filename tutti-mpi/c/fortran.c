/* The calls of Fortran programs. MPICH's own Fortran functions come through the C functions or are
 * named below; Open MPI's go straight to its inside. */
#include "taken.h"

#if defined(OPEN_MPI)
/* Addresses that stand for MPI_IN_PLACE and MPI_BOTTOM in Fortran. */
extern int mpi_fortran_in_place_ __attribute__((weak));
extern int mpi_fortran_bottom_ __attribute__((weak));
#define IS_IN_PLACE(at) (&mpi_fortran_in_place_ && (void *)(at) == &mpi_fortran_in_place_)
#define IS_BOTTOM(at) (&mpi_fortran_bottom_ && (void *)(at) == &mpi_fortran_bottom_)
#define ALIASES(lower, upper, mixed)                                                              \
    ALIAS(lower, lower##_) ALIAS(lower, lower##__) ALIAS(lower, upper) ALIAS(lower, mixed##_f)     \
    ALIAS(lower, mixed##_f08) ALIAS(lower, o##lower##_f)
#else
extern void *MPIR_F_MPI_IN_PLACE __attribute__((weak));
extern void *MPIR_F_MPI_BOTTOM __attribute__((weak));
#define IS_IN_PLACE(at) (&MPIR_F_MPI_IN_PLACE && (void *)(at) == MPIR_F_MPI_IN_PLACE)
#define IS_BOTTOM(at) (&MPIR_F_MPI_BOTTOM && (void *)(at) == MPIR_F_MPI_BOTTOM)
#define ALIASES(lower, upper, mixed)                                                              \
    ALIAS(lower, lower##_) ALIAS(lower, lower##__) ALIAS(lower, upper)
#endif

#define ALIAS(of, name) EXPORTED __typeof__(of) name __attribute__((alias(#of)));

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "arrays of counts are passed on as they are");

static void *buffer(void *at)
{
    return IS_IN_PLACE(at) ? MPI_IN_PLACE : IS_BOTTOM(at) ? MPI_BOTTOM : at;
}

static void tell(MPI_Fint *ierror, int code)
{
    if (ierror)
        *ierror = code;
}

EXPORTED void mpi_barrier(MPI_Fint *comm, MPI_Fint *ierror)
{
    tell(ierror, MPI_Barrier(PMPI_Comm_f2c(*comm)));
}

EXPORTED void mpi_allgather(void *from, MPI_Fint *from_count, MPI_Fint *from_type, void *to,
                            MPI_Fint *count, MPI_Fint *type, MPI_Fint *comm, MPI_Fint *ierror)
{
    tell(ierror, MPI_Allgather(buffer(from), *from_count, PMPI_Type_f2c(*from_type), buffer(to),
                               *count, PMPI_Type_f2c(*type), PMPI_Comm_f2c(*comm)));
}

EXPORTED void mpi_allgatherv(void *from, MPI_Fint *from_count, MPI_Fint *from_type, void *to,
                             MPI_Fint *counts, MPI_Fint *displs, MPI_Fint *type, MPI_Fint *comm,
                             MPI_Fint *ierror)
{
    tell(ierror, MPI_Allgatherv(buffer(from), *from_count, PMPI_Type_f2c(*from_type), buffer(to),
                                counts, displs, PMPI_Type_f2c(*type), PMPI_Comm_f2c(*comm)));
}

#ifndef OPEN_MPI
/* The one call of the module mpi_f08 that MPICH sends past its C functions. */
EXPORTED void mpi_barrier_f08_(MPI_Fint *comm, MPI_Fint *ierror)
{
    mpi_barrier(comm, ierror);
}
#endif

ALIASES(mpi_barrier, MPI_BARRIER, MPI_Barrier)
ALIASES(mpi_allgather, MPI_ALLGATHER, MPI_Allgather)
ALIASES(mpi_allgatherv, MPI_ALLGATHERV, MPI_Allgatherv)
