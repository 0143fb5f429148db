/* tests/session/quiet.c: once a session exists, the library opens nothing, connects to nothing and writes
 * nothing: a filter in the kernel ends the process when any of its threads tries, during planning, packing,
 * runs on several threads, and a plan for another shape. A plain program; skipped where filters are not
 * allowed. usage: quiet digits.onnx
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ortc/ortc.h"

enum { SKIPPED = 77 };

static const int forbidden[] = {
    SYS_openat,   SYS_openat2, SYS_socket,   SYS_connect,   SYS_sendto,  SYS_sendmsg, SYS_write,
    SYS_pwrite64, SYS_writev,  SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_execve,  SYS_memfd_create,
#ifdef SYS_open
    SYS_open,     SYS_creat,   SYS_unlink,   SYS_rename,    SYS_mkdir,   SYS_fork,    SYS_vfork,
#endif
};

/* 0: in force for all threads, and those to come. */
static int forbid(void)
{
    struct sock_filter f[2 + 2 * sizeof forbidden / sizeof *forbidden];
    unsigned short n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden[i], 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)
               ? errno ? errno : 1
               : 0;
}

static void trapped(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    _exit(100 + info->si_syscall % 100); /* who: to be looked up */
}

static int run(ortc_session *s, int64_t n)
{
    static float image[5 * 64];
    ortc_error e = ORTC_ERROR_INIT;
    ortc_in in = {"image", ortc_wrap(image, ORTC_F32, 4, (int64_t[]){n, 1, 8, 8})};
    ortc_out out = {"probabilities", NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    ortc_status status = ortc_run(s, &a, &e);
    ortc_value_release(in.value);
    ortc_value_release(out.value);
    return status != ORTC_OK;
}

/* 0: quiet; 1: a run failed; 2: the filter does not bite; SKIPPED; 100 and more: trapped. */
static int child(const char *path, int provoke)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m;
    ortc_session *cpu, *ref;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    if (ortc_model_load(path, NULL, &m, &e) || ortc_session_create(m, NULL, &cpu, &e)) return 1;
    o.providers = "ref";
    if (ortc_session_create(m, &o, &ref, &e)) return 1;
    sigaction(SIGSYS, &action, NULL);
    if (forbid()) return SKIPPED;
    if (provoke) return write(1, "x", 1), 2;
    for (int i = 0; i < 12; i++)
        if (run(i % 4 == 3 ? ref : cpu, 1 + i % 5)) return 1;
    ortc_session_trim(cpu);
    if (run(cpu, 2)) return 1;
    ortc_session_release(cpu);
    ortc_session_release(ref);
    ortc_model_release(m);
    return 0;
}

static int status_of(const char *path, int provoke)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) _exit(child(path, provoke));
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

int main(int argc, char **argv)
{
    int passed = 0;
    if (argc != 2) return 1;
    int provoked = status_of(argv[1], 1), quiet = status_of(argv[1], 0);
    if (provoked == SKIPPED) {
        printf("skipped: this system allows no filters of system calls\n");
        return SKIPPED;
    }
    if (provoked != 100 + SYS_write % 100)
        printf("FAILED: the filter does not see a write: %d\n", provoked);
    else
        passed++;
    if (quiet == 0)
        passed++;
    else
        printf("FAILED: %d; 100 and more: system call %d (modulo 100) was made\n", quiet, quiet - 100);
    printf("%d passed, %d failed\n", passed, 2 - passed);
    return passed != 2;
}
