// A tool as NVTX loads it (NVTX_INJECTION64_PATH): writes the ranges that begin and end into the file NVTX_TOOL_FILE.
//
//   run: NVTX_INJECTION64_PATH=libnvtx_tool.so NVTX_TOOL_FILE=ranges.txt <a program with ranges>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

int depth = 0;

void write_line(const std::string& text) {
  const char* path = std::getenv("NVTX_TOOL_FILE");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
  if (file < 0) return;
  [[maybe_unused]] const auto written = write(file, (text + "\n").c_str(), text.size() + 1);
  close(file);
}

int push(const char* text) {
  write_line(std::string("push ") + text);
  return depth++;
}

int pop() {
  write_line("pop");
  return --depth;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned count = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count)) return 0;
  if (count <= NVTX_CBID_CORE_RangePop) return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
