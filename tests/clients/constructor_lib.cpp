// A library that uses cuDNN while it is loaded and while it is unloaded: before and after main.
#include "tests/clients/one_conv.hpp"

__attribute__((constructor)) static void at_start() { clients::print_both("constructor"); }
__attribute__((destructor)) static void at_end() { clients::print_both("destructor"); }

extern "C" __attribute__((visibility("default"))) int in_main() { return clients::print_both("main"); }
