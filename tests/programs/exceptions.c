/* Prints the floating-point flags that each kernel raises, and with traps the thread that gets the signal. */
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "largesse.h"

enum { LONG = 2200000 };

static sigjmp_buf back;
static volatile int elsewhere;

static void trapped(int signal)
{
    (void)signal;
    elsewhere |= gettid() != getpid();
    siglongjmp(back, 1);
}

static void flags(const char *what)
{
    int raised = fetestexcept(FE_ALL_EXCEPT);
    printf("%s:%s%s%s%s%s\n", what, raised & FE_INVALID ? " invalid" : "", raised & FE_DIVBYZERO ? " divbyzero" : "",
           raised & FE_OVERFLOW ? " overflow" : "", raised & FE_UNDERFLOW ? " underflow" : "",
           raised & FE_INEXACT ? " inexact" : "");
    feclearexcept(FE_ALL_EXCEPT);
}

#define TRAPS(what, call)                                  \
    do {                                                   \
        int caught = sigsetjmp(back, 1);                   \
        feclearexcept(FE_ALL_EXCEPT);                      \
        feenableexcept(FE_OVERFLOW | FE_INVALID);          \
        if (!caught) (void)(call);                         \
        fedisableexcept(FE_ALL_EXCEPT);                    \
        printf("%s: %s\n", what, caught ? "trap" : "none"); \
        feclearexcept(FE_ALL_EXCEPT);                      \
    } while (0)

int main(void)
{
    double pair[] = {3e300, 4e300}, tiny[] = {1, 1e-200};
    float small[] = {0, 0, 2e38f};
    double *x = calloc(LONG, sizeof *x), *y = calloc(LONG, sizeof *y);
    for (int i = 0; i < LONG; i++) y[i] = 2;
    x[LONG - 1] = 0x1.8p1023; /* this element is in the share of the last thread */
    feclearexcept(FE_ALL_EXCEPT);
    printf("%g\n", largesse_dnrm2(2, pair, 1)), flags("nrm2 of large numbers");
    printf("%g\n", largesse_dnrm2(2, tiny, 1)), flags("nrm2 of a tiny number");
    printf("%g\n", (double)largesse_ssum(3, small, 1)), flags("sum of three numbers");
    printf("%g\n", largesse_dsum(LONG, x, 1)), flags("long sum");
    printf("%g\n", largesse_ddot(LONG, x, 1, y, 1)), flags("long dot");
    printf("%g\n", largesse_dnrm2(LONG, x, 1)), flags("long nrm2");
    largesse_daxpy(LONG, 2, x, 1, y, 1), flags("long axpy");
    y[LONG - 1] = 2;

    signal(SIGFPE, trapped);
    TRAPS("nrm2 of large numbers", largesse_dnrm2(2, pair, 1));
    TRAPS("long sum", largesse_dsum(LONG, x, 1));
    TRAPS("long dot", largesse_ddot(LONG, x, 1, y, 1));
    TRAPS("long dot again", largesse_ddot(LONG, x, 1, y, 1));
    TRAPS("long nrm2", largesse_dnrm2(LONG, x, 1));
    printf("%s\n", elsewhere ? "another thread trapped" : "this thread trapped");
    return 0;
}
