#include "taken.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls on a communicator before its members are asked: many are used once or twice. The same on
 * every member, or some would vote while others synchronise. */
#define CALLS_BEFORE 4

/* Groups of one process at a time; each has memory and connections of its own. */
#define GROUPS_MOST 64

/* What a process ends with whose MPI is another one. */
#define FOREIGN 78

#ifdef OPEN_MPI
#define FLAVOUR "Open MPI"
#elif defined(MPICH_VERSION)
#define FLAVOUR "MPICH"
#else
#define FLAVOUR ""
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct taken *all;
static int groups;
static int keyval = MPI_KEYVAL_INVALID;

/* A communicator of this process alone on which nothing is ever sent, and a receive on it: to test
 * it makes MPI go on. A probe would not do: MPICH answers it at once where there is one process. */
static MPI_Comm nobody = MPI_COMM_NULL;
static MPI_Request never = MPI_REQUEST_NULL;

/* Handles of one MPI are not those of another: a library made for the wrong one cannot even pass a
 * call on. */
__attribute__((constructor)) static void compare_flavours(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    int (*get_version)(char *, int *);
    *(void **)&get_version = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (!get_version)
        return;
    get_version(version, &length);
    if (strstr(version, FLAVOUR))
        return;
    version[strcspn(version, "\n")] = 0;
    fprintf(stderr,
            "tutti-mpi: the preloaded libtutti_mpi.so is for %s, the program uses %.40s; "
            "preload the one made by the mpicc of that MPI\n",
            FLAVOUR, version);
    _exit(FOREIGN);
}

static int is_on(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

static int gather(void *context, const void *mine, int bytes, void *everyones)
{
    MPI_Comm *comm = context;
    return PMPI_Allgather(mine, bytes, MPI_BYTE, everyones, bytes, MPI_BYTE, *comm) != MPI_SUCCESS;
}

static void progress(void *context)
{
    int is_done;
    (void)context;
    PMPI_Test(&never, &is_done, MPI_STATUS_IGNORE);
}

static void close_group(struct taken *taken)
{
    if (!taken->group)
        return;
    tutti_mpi_close(taken->group);
    taken->group = NULL;
    taken->phase = THEIRS;
    pthread_mutex_lock(&lock);
    groups--;
    pthread_mutex_unlock(&lock);
}

static void because(struct taken *taken, const char *why)
{
    snprintf(taken->why, sizeof taken->why, "%s", why);
}

static void report(struct taken *taken)
{
    if (taken->rank != 0 || taken->is_reported || !is_on("TUTTI_MPI_REPORT"))
        return;
    taken->is_reported = 1;
    fprintf(stderr,
            "tutti-mpi: %s of %d ranks: took over %lu barriers and %lu allgathers, left %lu calls "
            "to MPI%s%s\n",
            *taken->name ? taken->name : "a communicator", taken->size, taken->barriers,
            taken->gathers, taken->left, *taken->why ? ": " : "", taken->why);
}

/* MPI calls this when the communicator goes. */
static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    struct taken *taken = value;
    struct taken **at;
    (void)comm, (void)key, (void)extra;
    close_group(taken);
    pthread_mutex_lock(&lock);
    for (at = &all; *at; at = &(*at)->next)
        if (*at == taken) {
            *at = taken->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    report(taken);
    free(taken->lengths);
    free(taken->starts);
    free(taken->packed);
    free(taken);
    return MPI_SUCCESS;
}

/* Whether packed data is nothing but the values in their order, as this library needs it. */
static int packs_plainly(void)
{
    int pair[3] = {1, 2, 3}, packed[8], room = sizeof packed, position = 0;
    MPI_Datatype apart;
    if (PMPI_Type_vector(2, 1, 2, MPI_INT, &apart) != MPI_SUCCESS)
        return 0;
    PMPI_Type_commit(&apart);
    PMPI_Pack(pair, 1, apart, packed, room, &position, MPI_COMM_SELF);
    PMPI_Type_free(&apart);
    return position == (int)(2 * sizeof(int)) && packed[0] == 1 && packed[1] == 3;
}

/* MPI calls this first when it is finalized, in C, in Fortran and with sessions: it is an attribute
 * of MPI_COMM_SELF (MPI 4.1, 11.2.4). */
static int farewell(MPI_Comm comm, int key, void *value, void *extra)
{
    struct taken *taken;
    (void)comm, (void)key, (void)value, (void)extra;
    /* The program may not use MPI any more, so nobody changes the list. */
    for (taken = all; taken; taken = taken->next) {
        close_group(taken);
        /* Not every MPI deletes the attributes of what is left. */
        report(taken);
    }
    if (never != MPI_REQUEST_NULL) {
        PMPI_Cancel(&never);
        PMPI_Wait(&never, MPI_STATUS_IGNORE);
    }
    if (nobody != MPI_COMM_NULL)
        PMPI_Comm_free(&nobody);
    return MPI_SUCCESS;
}

/* Why this process cannot take part in a group; NULL if it can. Reserves a place then. */
static const char *objection(void)
{
    static char nothing;
    int initialized = 0, level = MPI_THREAD_MULTIPLE, is_free;
    const char *off = getenv("TUTTI_MPI");
    if (off && strcmp(off, "off") == 0)
        return "TUTTI_MPI=off";
    PMPI_Initialized(&initialized);
    if (!initialized)
        return "MPI was not started by MPI_Init";
    PMPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE)
        return "MPI_THREAD_MULTIPLE";
    if (!packs_plainly())
        return "MPI_Pack of this MPI adds to the data";
    if (nobody == MPI_COMM_NULL && PMPI_Comm_dup(MPI_COMM_SELF, &nobody) != MPI_SUCCESS)
        return "MPI has no communicator left";
    if (never == MPI_REQUEST_NULL &&
        PMPI_Irecv(&nothing, 0, MPI_BYTE, 0, 0, nobody, &never) != MPI_SUCCESS)
        return "MPI has no request left";
    pthread_mutex_lock(&lock);
    is_free = groups < GROUPS_MOST;
    groups += is_free;
    pthread_mutex_unlock(&lock);
    return is_free ? NULL : "there are too many communicators";
}

/* Asks all members, and joins them if all agree. */
static void ask(struct taken *taken, MPI_Comm comm)
{
    char line[512] = "";
    const char *why = objection();
    int reserved = !why, agreed = !why, length;

    taken->phase = THEIRS;
    because(taken, why ? why : "another rank objects");
    PMPI_Comm_get_name(comm, taken->name, &length);
    if (PMPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        agreed = 0;
    if (agreed) {
        tutti_mpi_peers peers = {(uint32_t)taken->rank, (uint32_t)taken->size, gather, progress,
                                 &comm};
        taken->lengths = calloc((size_t)taken->size, sizeof *taken->lengths);
        taken->starts = calloc((size_t)taken->size, sizeof *taken->starts);
        taken->packed = calloc((size_t)taken->size, sizeof *taken->packed);
        taken->group = tutti_mpi_open(&peers, line, sizeof line);
        agreed = taken->group && taken->lengths && taken->starts && taken->packed;
        if (*line && is_on("TUTTI_MPI_REPORT"))
            fprintf(stderr, "tutti-mpi: rank %d of %s: %s\n", taken->rank, taken->name, line);
        because(taken, "a rank could not join");
        if (PMPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
            agreed = 0;
    }
    if (agreed) {
        taken->phase = OURS;
        because(taken, tutti_mpi_fabric(taken->group));
        return;
    }
    if (taken->group)
        close_group(taken);
    else if (reserved) {
        pthread_mutex_lock(&lock);
        groups--;
        pthread_mutex_unlock(&lock);
    }
}

/* A communicator that is met for the first time. */
static struct taken *meet(MPI_Comm comm)
{
    struct taken *taken;
    int is_inter = 0;
    if (PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS)
        return NULL;
    taken = calloc(1, sizeof *taken);
    if (!taken) {
        /* The others may go on to vote. */
        fprintf(stderr, "tutti-mpi: out of memory\n");
        PMPI_Abort(comm, 1);
        return NULL;
    }
    PMPI_Comm_rank(comm, &taken->rank);
    PMPI_Comm_size(comm, &taken->size);
    if (is_inter || taken->size == 1) {
        taken->phase = THEIRS;
        because(taken, is_inter ? "an inter-communicator" : "one rank");
    }
    PMPI_Comm_set_attr(comm, keyval, taken);
    pthread_mutex_lock(&lock);
    taken->next = all;
    all = taken;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* Makes the attributes, once. */
static void begin(void)
{
    int fresh = MPI_KEYVAL_INVALID, last = MPI_KEYVAL_INVALID;
    pthread_mutex_lock(&lock);
    if (keyval == MPI_KEYVAL_INVALID) {
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, farewell, &last, NULL);
        PMPI_Comm_set_attr(MPI_COMM_SELF, last, NULL);
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &fresh, NULL);
        __atomic_store_n(&keyval, fresh, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

struct taken *tutti_mpi_taken(MPI_Comm comm)
{
    struct taken *taken = NULL;
    int found = 0;
    if (comm == MPI_COMM_NULL)
        return NULL;
    /* Pairs with the store in begin: whoever sees the key may use it. */
    if (__atomic_load_n(&keyval, __ATOMIC_ACQUIRE) == MPI_KEYVAL_INVALID)
        begin();
    if (PMPI_Comm_get_attr(comm, keyval, &taken, &found) != MPI_SUCCESS)
        return NULL;
    if (!found && !(taken = meet(comm)))
        return NULL;
    if (taken->phase == COUNTING && ++taken->calls > CALLS_BEFORE)
        ask(taken, comm);
    if (taken->phase == OURS)
        return taken;
    taken->left++;
    return NULL;
}

void tutti_mpi_left(struct taken *taken)
{
    taken->left++;
}

int tutti_mpi_failed(struct taken *taken, MPI_Comm comm, const char *call)
{
    fprintf(stderr, "tutti-mpi: rank %d of %s: %s: %s\n", taken->rank, taken->name, call,
            tutti_mpi_message(taken->group));
    PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}
