/* Lets the checked library call the `malloc` that it exports, which its own code must never do. */
#include <dlfcn.h>
#include <stdio.h>
#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT ((void *)0)
#endif
int main(void) {
    void (*recurse)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "largesse_debug_recurse");
    if (!recurse) { puts("no largesse_debug_recurse"); return 0; }
    recurse();
    puts("it went on");
    return 0;
}
