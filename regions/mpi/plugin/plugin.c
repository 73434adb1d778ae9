/* Implements the functions of plugin.h for one MPI library. The same source is compiled once for every library
 * (`make plugins`), since names and sizes of MPI's types differ between them. */
#include "plugin.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define TRY(call)                        \
    do {                                 \
        int error_ = (call);             \
        if (error_) return error_;       \
    } while (0)

/* Errors of our own; those of MPI are positive. */
enum { NO_THREADS = -1, TOO_MUCH = -2 };

static MPI_Comm all = MPI_COMM_NULL, here = MPI_COMM_NULL;
/* The memory that all ranks lend. */
static MPI_Win window = MPI_WIN_NULL;

/* Sets `share`. A library that was told to use no shared memory reports no neighbours, or refuses a shared window, which is
 * no error. */
static int may_share(int neighbours, uint32_t *share) {
    MPI_Win some;
    void *memory;
    int well;
    *share = 0;
    if (!neighbours) return MPI_SUCCESS;
    TRY(MPI_Comm_set_errhandler(here, MPI_ERRORS_RETURN));
    well = !MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, here, &memory, &some);
    if (well) TRY(MPI_Win_free(&some));
    TRY(MPI_Allreduce(MPI_IN_PLACE, &well, 1, MPI_INT, MPI_MIN, here));
    *share = (uint32_t)well;
    return MPI_SUCCESS;
}

/* MPI_THREAD_MULTIPLE is not asked for: Open MPI 4 has no windows over TCP then. */
static int join(struct largesse_mpi_world *world) {
    int level, rank, size;
    TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
    if (level < MPI_THREAD_SERIALIZED) return NO_THREADS;
    TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    TRY(MPI_Comm_dup(MPI_COMM_WORLD, &all));
    TRY(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
    TRY(MPI_Comm_rank(all, &rank));
    TRY(MPI_Comm_size(all, &size));
    world->rank = (uint32_t)rank;
    world->ranks = (uint32_t)size;
    TRY(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here));
    TRY(MPI_Comm_size(here, &size));
    world->ranks_here = (uint32_t)size;
    return may_share(size > 1, &world->share);
}

static int leave(void) {
    if (window != MPI_WIN_NULL) {
        TRY(MPI_Win_unlock_all(window));
        TRY(MPI_Win_free(&window));
    }
    TRY(MPI_Comm_free(&here));
    TRY(MPI_Comm_free(&all));
    return MPI_Finalize();
}

static int lend(uint64_t len, void *own) {
    MPI_Aint bytes = (MPI_Aint)len;
    if (bytes < 0 || (uint64_t)bytes != len) return TOO_MUCH;
    TRY(MPI_Win_create(bytes ? own : NULL, bytes, 1, MPI_INFO_NULL, all, &window));
    TRY(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    /* No rank takes an exclusive lock, so that the check for conflicts is not needed. */
    return MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
}

static int look(void) {
    return MPI_Win_sync(window);
}

/* Requests of MPICH are tested one by one. Its flush spins until its time slice ends, even if the other side needs this
 * processor. Open MPI's flush yields, and ends all copies from and to a rank together; requests of its UCX windows hang
 * now and then in 4.1. */
#ifdef OPEN_MPI

static int start_get(uint32_t rank, uint64_t at, void *into, uint64_t len, MPI_Request *copy) {
    *copy = MPI_REQUEST_NULL;
    return MPI_Get(into, (int)len, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)len, MPI_BYTE, window);
}

static int start_put(uint32_t rank, uint64_t at, const void *from, uint64_t len, MPI_Request *copy) {
    *copy = MPI_REQUEST_NULL;
    return MPI_Put(from, (int)len, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)len, MPI_BYTE, window);
}

static int finished(int write, uint32_t rank, MPI_Request *copy, int *done) {
    (void)write, (void)copy;
    *done = 1;
    return MPI_Win_flush((int)rank, window);
}

#else

static int start_get(uint32_t rank, uint64_t at, void *into, uint64_t len, MPI_Request *copy) {
    return MPI_Rget(into, (int)len, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)len, MPI_BYTE, window, copy);
}

static int start_put(uint32_t rank, uint64_t at, const void *from, uint64_t len, MPI_Request *copy) {
    return MPI_Rput(from, (int)len, MPI_BYTE, (int)rank, (MPI_Aint)at, (int)len, MPI_BYTE, window, copy);
}

/* The request of a put is complete when its bytes have left; they have arrived after a flush. */
static int finished(int write, uint32_t rank, MPI_Request *copy, int *done) {
    TRY(MPI_Test(copy, done, MPI_STATUS_IGNORE));
    return *done && write ? MPI_Win_flush((int)rank, window) : MPI_SUCCESS;
}

#endif

/* A request is a number or a pointer. */
_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request fits the caller's word");

static int start(int write, uint32_t rank, uint64_t at, void *memory, uint64_t len, uint64_t *copy) {
    MPI_Request request;
    TRY(write ? start_put(rank, at, memory, len, &request) : start_get(rank, at, memory, len, &request));
    *copy = 0;
    memcpy(copy, &request, sizeof request);
    return MPI_SUCCESS;
}

static int test(int write, uint32_t rank, uint64_t *copy, int *done) {
    MPI_Request request;
    memcpy(&request, copy, sizeof request);
    TRY(finished(write, rank, &request, done));
    memcpy(copy, &request, sizeof request);
    return MPI_SUCCESS;
}

static int send(uint32_t rank, const struct largesse_mpi_message *message) {
    return MPI_Send(message, sizeof *message, MPI_BYTE, (int)rank, 0, all);
}

static int receive(struct largesse_mpi_message *message, int *found) {
    MPI_Status status;
    TRY(MPI_Iprobe(MPI_ANY_SOURCE, 0, all, found, &status));
    if (!*found) return MPI_SUCCESS;
    TRY(MPI_Recv(message, sizeof *message, MPI_BYTE, status.MPI_SOURCE, 0, all, MPI_STATUS_IGNORE));
    message->rank = (uint32_t)status.MPI_SOURCE;
    return MPI_SUCCESS;
}

static void words(int error, char *into, uint64_t len) {
    char text[MPI_MAX_ERROR_STRING];
    int used;
    if (error == NO_THREADS)
        snprintf(into, len, "this MPI library was built without threads");
    else if (error == TOO_MUCH)
        snprintf(into, len, "more memory than there are addresses");
    else if (MPI_Error_string(error, text, &used))
        snprintf(into, len, "MPI error %d", error);
    else
        snprintf(into, len, "%s", text);
}

const struct largesse_mpi LARGESSE_MPI = {join, leave, lend, look, start, test, send, receive, words};
