/* How long a program runs and how much memory it takes: spawn COUNT PROGRAM ARGUMENT...
 * Prints the least wall time of COUNT runs in seconds, and the largest resident size in MiB.
 * What the program prints is thrown away; the exit status is 1 if it fails. */
#define _DEFAULT_SOURCE /* wait4 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

int main(int argc, char **argv) {
  double least = 1e9;
  long kibibytes = 0;
  if (argc < 3) return 1;
  for (int i = 0; i < atoi(argv[1]); i++) {
    double start = bench_seconds();
    pid_t child = fork();
    if (child == 0) {
      int nowhere = open("/dev/null", O_WRONLY);
      dup2(nowhere, 1);
      dup2(nowhere, 2);
      execvp(argv[2], argv + 2);
      _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) return 1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
    double taken = bench_seconds() - start;
    if (taken < least) least = taken;
    if (usage.ru_maxrss > kibibytes) kibibytes = usage.ru_maxrss;
  }
  printf("%.9f %.3f\n", least, (double)kibibytes / 1024);
  return 0;
}
