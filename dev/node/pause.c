/* The process that holds a pod's namespaces: it waits, collects orphans, and ends when asked. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number) {
    (void)number;
    _exit(0);
}

static void reap(int number) {
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void) {
    struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP | SA_RESTART};
    if (signal(SIGINT, end) == SIG_ERR || signal(SIGTERM, end) == SIG_ERR || sigaction(SIGCHLD, &on_child, NULL) != 0)
        return EXIT_FAILURE;
    for (;;)
        pause();
}
