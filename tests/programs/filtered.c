/* Runs a program for which some system calls fail, as under the filter of a container.
 * filtered ERRNO CALLS PROGRAM ARGUMENTS…, where CALLS is a list such as userfaultfd,close_range */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char *name; unsigned number; } calls[] = {
    {"userfaultfd", SYS_userfaultfd}, {"close_range", SYS_close_range}, {"pidfd_getfd", SYS_pidfd_getfd},
    {"io_setup", SYS_io_setup}, {"io_uring_setup", SYS_io_uring_setup},
};
/* USERFAULTFD_IOC_NEW is the ioctl of /dev/userfaultfd that creates a descriptor. */
enum { USERFAULTFD_IOC_NEW = 0xaa00, MOST = 32 };

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    unsigned refused = SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1]);
    struct sock_filter code[MOST];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strstr(argv[2], calls[i].name)) {
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
            code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refused);
        }
    if (strstr(argv[2], "userfaultfd")) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]));
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, USERFAULTFD_IOC_NEW, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refused);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 3;
    execvp(argv[3], argv + 3);
    return 4;
}
