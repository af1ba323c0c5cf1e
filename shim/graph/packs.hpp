// What variant packs hold, seen as they are built, since it can't be read back. Only while somebody needs it (watch_packs).
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <vector>

namespace convpin::graph {

// No allocation: the last few of each thread.
void note_variant_pack(cudnnBackendDescriptor_t pack, cudnnBackendAttributeName_t, std::int64_t count,
                       const void* values) noexcept;
void forget_variant_pack(cudnnBackendDescriptor_t pack) noexcept;  // its address may come again

// False where the pack was not seen, was built on another thread, or overrides the graph's shapes.
bool read_variant_pack(cudnnBackendDescriptor_t pack, std::vector<std::int64_t>& ids, std::vector<void*>& pointers);

}  // namespace convpin::graph
