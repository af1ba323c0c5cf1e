/* A library that wraps functions by dlsym(RTLD_NEXT) and asks dlsym(RTLD_DEFAULT) for what only its own scope holds. Both
   are right only where the loader takes *this* library for the one that asks. Built with -O0 and with -O2 (where a call at
   a function's end becomes a jump).

   Preloaded, it wraps getppid: with the wrong caller, RTLD_NEXT finds the wrapper itself. Opened RTLD_LOCAL, scope_run
   asks for scope_mark, which is in no other scope. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int depth;

EXPORT pid_t getppid(void) {
  if (depth++) return printf("scope: the wrapper found itself\n"), -1;
  pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "getppid");
  const pid_t found = next ? next() : -1;
  --depth;
  return found;
}

EXPORT int scope_mark(void) { return 42; }

static void* by_default(const char* name) { return dlsym(RTLD_DEFAULT, name); }

EXPORT int scope_run(void) {
  int (*mark)(void) = (int (*)(void))by_default("scope_mark");
  void* next = dlsym(RTLD_NEXT, "scope_mark");  /* nothing behind us has one */
  const char* error = dlerror();
  const int parent = getppid() > 0;
  printf("scope: default %s, next %s (%s), parent %s\n", mark && mark() == 42 ? "right" : "wrong", next ? "wrong" : "right",
         error ? error : "no error", parent ? "right" : "wrong");
  return mark && !next && parent;
}
