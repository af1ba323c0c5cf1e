#include "shim/process/output.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace convpin {
namespace {

std::atomic<bool> quiet_rank{false};

// One write(2); its error, 0 for none. If the reader is gone, the SIGPIPE would be the program's end, not ours to cause: block it on this
// thread and take it away again (the pattern of "write with SIGPIPE suppressed", pthread_sigmask(3)).
int write_once(int descriptor, const std::string& text) noexcept {
  const int saved_errno = errno;
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigaddset(&pipe_signal, SIGXFSZ);  // a limit on files' sizes
  sigpending(&pending);
  const bool blocked = pthread_sigmask(SIG_BLOCK, &pipe_signal, &before) == 0;
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  const int error = written == static_cast<ssize_t>(text.size()) ? 0 : written < 0 ? errno : ENOSPC;
  if (blocked) {
    const int raised = written >= 0 ? 0 : errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
    if (raised && sigismember(&pending, raised) != 1) {
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, raised);
      const timespec now{};
      while (sigtimedwait(&one, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  errno = saved_errno;
  return error;
}

// Not waiting for somebody to read where the name is a pipe's, and not as descriptor 0 to 2: in a program that closed
// its stderr, words for people would end up in the log.
int open_log(const char* path) noexcept {
  const int opened = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  if (opened < 0) return -1;
  fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK);
  if (opened > STDERR_FILENO) return opened;
  const int moved = fcntl(opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int saved_errno = errno;
  close(opened);
  errno = saved_errno;
  return moved;
}

}  // namespace

void set_quiet(bool quiet) noexcept { quiet_rank = quiet; }

void say(const std::string& lines) noexcept {
  if (!lines.empty() && !quiet_rank) write_once(STDERR_FILENO, lines);
}

bool Log::opened_for_this_process() {
  const int process = static_cast<int>(getpid());
  if (process_ == process) return false;
  process_ = process;
  if (descriptor_ >= 0) close(descriptor_);  // the parent's, after fork
  const std::string path = expand_path(pattern_, [](const char* name) { return secure_getenv(name); });
  descriptor_ = open_log(path.c_str());
  if (descriptor_ < 0) {
    say("convpin: warning: the log file " + path + " can't be opened: " + std::strerror(errno) +
        "; the run goes on without a log\n");
    return false;
  }
  return true;
}

void Log::append(const std::string& record) noexcept {
  if (descriptor_ < 0) return;
  const int error = write_once(descriptor_, record + "\n");
  if (error == 0 || failed_) return;
  failed_ = true;
  say(std::string("convpin: warning: the log can't be written: ") + std::strerror(error) + "; records are lost\n");
}

}  // namespace convpin
