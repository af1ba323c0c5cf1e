// Convolutions from a library's constructor, from main and from the library's destructor. A preloaded
// library's own constructors run after the first of these and its destructors before the last.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> constructor
//
// On a GPU the destructor's may fail, since the CUDA runtime inside cuDNN may have ended before; it must not
// crash.
extern "C" int in_main();

int main() { return in_main() ? 0 : 1; }
