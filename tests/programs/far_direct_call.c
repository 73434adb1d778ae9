// A system call by an instruction of the program's own, on memory that is far.
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
