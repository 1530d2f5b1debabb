/* MPI_Barrier, MPI_Allgather and MPI_Allgatherv.
 *
 * Whether a call is ours follows from the communicator and from the bytes that each member
 * receives, which MPI makes the same for all members: never from a datatype's layout, which may
 * differ. Values that do not lie side by side are packed and unpacked by MPI. */
#include "taken.h"

#include <limits.h>
#include <stdlib.h>

/* A buffer as MPI describes it. */
struct values {
    MPI_Datatype type;
    MPI_Count size;
    MPI_Count extent;
    /* Whether the values lie side by side, from the buffer's first byte on. */
    int is_plain;
};

static int describe(MPI_Datatype type, struct values *values)
{
    MPI_Count lower;
    int integers, addresses, types, combiner;
    values->type = type;
    if (type == MPI_DATATYPE_NULL ||
        PMPI_Type_size_x(type, &values->size) != MPI_SUCCESS || values->size < 0 ||
        PMPI_Type_get_extent_x(type, &lower, &values->extent) != MPI_SUCCESS ||
        PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
        return 0;
    values->is_plain = combiner == MPI_COMBINER_NAMED && values->size == values->extent;
    return 1;
}

static char *place(const void *base, MPI_Count number, const struct values *values)
{
    return (char *)base + number * values->extent;
}

/* `count` values at `from`, side by side: where they are, or a copy to be freed. */
static const void *plain(const void *from, MPI_Count count, const struct values *values,
                         void **copy)
{
    int bytes = (int)(count * values->size), position = 0;
    *copy = NULL;
    if (values->is_plain)
        return from;
    *copy = malloc((size_t)bytes + 1);
    if (*copy && PMPI_Pack((void *)from, (int)count, values->type, *copy, bytes, &position,
                           MPI_COMM_SELF) == MPI_SUCCESS)
        return *copy;
    free(*copy);
    *copy = NULL;
    return NULL;
}

static int unpack(const void *from, void *to, MPI_Count count, const struct values *values)
{
    int position = 0;
    return PMPI_Unpack((void *)from, (int)(count * values->size), &position, to, (int)count,
                       values->type, MPI_COMM_SELF);
}

static int out_of_memory(MPI_Comm comm)
{
    PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

/* The values sent: those of `send`, or this member's place in the receive buffer. */
struct sent {
    const void *from;
    MPI_Count count;
    struct values values;
};

/* Whether what is sent is as much as the others expect; else the program is wrong, and the other
 * members can only be told by the error handler. */
static int sends(const struct sent *sent, MPI_Count bytes, MPI_Comm comm)
{
    if (sent->count * sent->values.size == bytes)
        return 1;
    PMPI_Comm_call_errhandler(comm, MPI_ERR_TRUNCATE);
    return 0;
}

/* What an MPI_Allgather that is ours does; `bytes` of each member. */
static int gather_evenly(struct taken *taken, const struct sent *sent, void *to, MPI_Count count,
                         const struct values *values, MPI_Comm comm)
{
    size_t bytes = (size_t)(count * values->size);
    void *copy, *room = NULL;
    const void *mine = plain(sent->from, sent->count, &sent->values, &copy);
    int code = MPI_SUCCESS, member;
    if (!mine || (!values->is_plain && !(room = malloc(bytes * (size_t)taken->size)))) {
        free(copy);
        return out_of_memory(comm);
    }
    taken->gathers++;
    if (tutti_mpi_allgather(taken->group, mine, bytes, values->is_plain ? to : room))
        code = tutti_mpi_failed(taken, comm, "MPI_Allgather");
    for (member = 0; code == MPI_SUCCESS && room && member < taken->size; member++)
        code = unpack((char *)room + (size_t)member * bytes,
                      place(to, member * count, values), count, values);
    free(room);
    free(copy);
    return code;
}

/* As above for MPI_Allgatherv. Member i's bytes, taken->lengths[i], go to the byte taken->starts[i]
 * of `to`; `total` bytes in all. */
static int gather_unevenly(struct taken *taken, const struct sent *sent, void *to,
                           const struct values *values, size_t total, MPI_Comm comm)
{
    void *copy, *room = NULL;
    const void *mine = plain(sent->from, sent->count, &sent->values, &copy);
    int code = MPI_SUCCESS, member;
    ptrdiff_t end = 0;
    if (!mine || (!values->is_plain && !(room = malloc(total)))) {
        free(copy);
        return out_of_memory(comm);
    }
    for (member = 0; member < taken->size; member++) {
        taken->packed[member] = end;
        end += (ptrdiff_t)taken->lengths[member];
    }
    taken->gathers++;
    if (tutti_mpi_allgatherv(taken->group, mine, room ? room : to, taken->lengths,
                             room ? taken->packed : taken->starts))
        code = tutti_mpi_failed(taken, comm, "MPI_Allgatherv");
    for (member = 0; code == MPI_SUCCESS && room && member < taken->size; member++)
        code = unpack((char *)room + taken->packed[member], (char *)to + taken->starts[member],
                      (MPI_Count)taken->lengths[member] / values->size, values);
    free(room);
    free(copy);
    return code;
}

/* Fills in what is sent; 0 if it makes no sense. */
static int describe_sent(struct sent *sent, const void *from, MPI_Count count, MPI_Datatype type,
                         const void *own, MPI_Count own_count, const struct values *values)
{
    if (from == MPI_IN_PLACE) {
        sent->from = own;
        sent->count = own_count;
        sent->values = *values;
        return 1;
    }
    sent->from = from;
    sent->count = count;
    return describe(type, &sent->values);
}

/* -1 if the call is MPI's. */
static int allgather(const void *from, MPI_Count from_count, MPI_Datatype from_type, void *to,
                     MPI_Count count, MPI_Datatype type, MPI_Comm comm)
{
    struct taken *taken = tutti_mpi_taken(comm);
    struct values values;
    struct sent sent;
    if (!taken)
        return -1;
    if (count <= 0 || !describe(type, &values) || values.size == 0 ||
        count > INT_MAX / values.size) {
        tutti_mpi_left(taken);
        return -1;
    }
    if (!describe_sent(&sent, from, from_count, from_type,
                       place(to, taken->rank * count, &values), count, &values) ||
        !sends(&sent, count * values.size, comm))
        return MPI_ERR_ARG;
    return gather_evenly(taken, &sent, to, count, &values, comm);
}

/* -1 if the call is MPI's. `counts` and `displs` as int or as MPI_Count and MPI_Aint. */
static int allgatherv(const void *from, MPI_Count from_count, MPI_Datatype from_type, void *to,
                      const int *counts, const int *displs, const MPI_Count *large_counts,
                      const MPI_Aint *large_displs, MPI_Datatype type, MPI_Comm comm)
{
    struct taken *taken = tutti_mpi_taken(comm);
    struct values values;
    struct sent sent;
    size_t total = 0;
    int member, is_ours;
    if (!taken)
        return -1;
    is_ours = describe(type, &values) && values.size > 0;
    for (member = 0; is_ours && member < taken->size; member++) {
        MPI_Count count = counts ? counts[member] : large_counts[member];
        MPI_Count start = displs ? displs[member] : large_displs[member];
        is_ours = count >= 0 && count <= INT_MAX / values.size;
        taken->lengths[member] = (size_t)(count * values.size);
        taken->starts[member] = (ptrdiff_t)(start * values.extent);
        total += taken->lengths[member];
    }
    if (!is_ours || total == 0) {
        tutti_mpi_left(taken);
        return -1;
    }
    if (!describe_sent(&sent, from, from_count, from_type,
                       (char *)to + taken->starts[taken->rank],
                       (MPI_Count)taken->lengths[taken->rank] / values.size, &values) ||
        !sends(&sent, (MPI_Count)taken->lengths[taken->rank], comm))
        return MPI_ERR_ARG;
    return gather_unevenly(taken, &sent, to, &values, total, comm);
}

EXPORTED int MPI_Barrier(MPI_Comm comm)
{
    struct taken *taken = tutti_mpi_taken(comm);
    if (!taken)
        return PMPI_Barrier(comm);
    taken->barriers++;
    if (tutti_mpi_barrier(taken->group))
        return tutti_mpi_failed(taken, comm, "MPI_Barrier");
    return MPI_SUCCESS;
}

EXPORTED int MPI_Allgather(const void *from, int from_count, MPI_Datatype from_type, void *to,
                           int count, MPI_Datatype type, MPI_Comm comm)
{
    int code = allgather(from, from_count, from_type, to, count, type, comm);
    return code >= 0 ? code
                     : PMPI_Allgather(from, from_count, from_type, to, count, type, comm);
}

EXPORTED int MPI_Allgatherv(const void *from, int from_count, MPI_Datatype from_type, void *to,
                            const int counts[], const int displs[], MPI_Datatype type,
                            MPI_Comm comm)
{
    int code = allgatherv(from, from_count, from_type, to, counts, displs, NULL, NULL, type, comm);
    return code >= 0
               ? code
               : PMPI_Allgatherv(from, from_count, from_type, to, counts, displs, type, comm);
}

#if MPI_VERSION >= 4
EXPORTED int MPI_Allgather_c(const void *from, MPI_Count from_count, MPI_Datatype from_type,
                             void *to, MPI_Count count, MPI_Datatype type, MPI_Comm comm)
{
    int code = allgather(from, from_count, from_type, to, count, type, comm);
    return code >= 0 ? code
                     : PMPI_Allgather_c(from, from_count, from_type, to, count, type, comm);
}

EXPORTED int MPI_Allgatherv_c(const void *from, MPI_Count from_count, MPI_Datatype from_type,
                              void *to, const MPI_Count counts[], const MPI_Aint displs[],
                              MPI_Datatype type, MPI_Comm comm)
{
    int code = allgatherv(from, from_count, from_type, to, NULL, NULL, counts, displs, type, comm);
    return code >= 0
               ? code
               : PMPI_Allgatherv_c(from, from_count, from_type, to, counts, displs, type, comm);
}
#endif
