// A shared object that is linked to cuDNN, as a framework's core library is. dlopened.cpp opens it;
// two_copies.cpp opens two builds of it, linked to two copies of libcudnn.so.9.
#include "tests/clients/one_conv.hpp"

// Runs one graph and one legacy convolution; 1 where both gave the right result.
extern "C" __attribute__((visibility("default"))) int convlib_run(const char* who) {
  return clients::print_both(who);
}
