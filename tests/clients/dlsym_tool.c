/* Another tool that is preloaded and hooks dlsym, in the usual way: it counts the look-ups, of all and of cuDNN's, and says
   so at the end. It jumps to the next dlsym, as a careful one does (compiled with -O2). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef void* (*function)(void*, const char*);
static _Atomic(function) real;
static atomic_int all, cudnn;

__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  if (!real) real = (function)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (!real) real = (function)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
  ++all;
  if (name && !strncmp(name, "cudnn", 5)) ++cudnn;
  return real(handle, name);
}

__attribute__((destructor)) static void at_end(void) { fprintf(stderr, "tool: %s look-ups, %d of cuDNN\n", all ? "some" : "no", cudnn); }
