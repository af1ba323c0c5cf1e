/* A cuDNN that lacks nearly everything, under the SONAME and with the version number that the build gives it. What it has
   does nothing. */
#include <stddef.h>

size_t cudnnGetVersion(void) { return FEW_VERSION; }
int cudnnBackendCreateDescriptor(int type, void** out) { return *out = (void*)&cudnnGetVersion, (void)type, 0; }
