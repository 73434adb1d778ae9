// Makes a system call on far memory by an instruction of its own instead of the C library.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { NEEDED = 1 << 20, FLOOD = 40 << 20 };

int main(void) {
    char *needed = malloc(NEEDED), *flood = malloc(FLOOD);
    memset(needed, 1, NEEDED), memset(flood, 1, FLOOD), memset(flood, 2, FLOOD);
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_getrandom), "D"(needed), "S"(100), "d"(0)
                     : "rcx", "r11", "memory");
    puts(answer == -EFAULT ? "EFAULT" : "no error");
    return flood[7] != 2;
}
