/* The interface of a plug-in: one MPI library behind plain types. src/plugin.rs is the other side: a change here needs one
 * there, and a new number in the name LARGESSE_MPI.
 *
 * Functions return 0 or an error, which `words` explains. One thread calls at a time. */
#ifndef LARGESSE_MPI_PLUGIN_H
#define LARGESSE_MPI_PLUGIN_H

#include <stdint.h>

#define LARGESSE_MPI largesse_mpi_3

/* The ranks that the launcher started together. */
struct largesse_mpi_world {
    uint32_t rank;
    uint32_t ranks;
    uint32_t ranks_here; /* on this machine, this one included */
    uint32_t share; /* 0: ranks of this machine must not share memory */
};

/* A message between ranks; src/message.rs defines its meaning. */
struct largesse_mpi_message {
    uint32_t verb;
    uint32_t rank; /* the sender, set on receipt */
    uint64_t first;
    uint64_t count;
};

struct largesse_mpi {
    /* The first and the last call, which all ranks make. */
    int (*join)(struct largesse_mpi_world *world);
    int (*leave)(void);

    /* Lends `len` bytes to the others; all ranks call it. */
    int (*lend)(uint64_t len, void *own);
    /* Makes transfers of others to `own` visible here. */
    int (*look)(void);

    /* Starts to copy from or, if `write` is not 0, to the memory that `rank` lends. Many copies may be in flight. */
    int (*start)(int write, uint32_t rank, uint64_t at, void *memory, uint64_t len, uint64_t *copy);
    /* Sets `done` to 1 if a copy that was started is complete: it is then forgotten. The call may wait for that. */
    int (*test)(int write, uint32_t rank, uint64_t *copy, int *done);

    int (*send)(uint32_t rank, const struct largesse_mpi_message *message);
    /* `found` is 0 when there is no message. */
    int (*receive)(struct largesse_mpi_message *message, int *found);

    /* Writes the error message to `into`, at most `len` bytes with a zero at the end. */
    void (*words)(int error, char *into, uint64_t len);
};

extern const struct largesse_mpi LARGESSE_MPI;

#endif
