#include "shim/profile/measure.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "shim/model/record.hpp"
#include "shim/process/report.hpp"
#include "shim/profile/buffer.hpp"
#include "shim/profile/compare.hpp"

namespace convpin {
namespace {

constexpr int kMostProblems = 64;
constexpr double kMemoryShare = 0.10;   // of what is free
constexpr double kHopeless = 10.0;      // times the best so far

using Clock = std::chrono::steady_clock;

std::timed_mutex place;
std::atomic<int> problems{0}, problems_cut{0}, candidates_cut{0}, candidates_too_large{0};
std::atomic<std::int64_t> spent_us{0};

double spent_seconds() { return static_cast<double>(spent_us.load()) * 1e-6; }
bool over_budget(Clock::time_point turn_began) {
  const double now = std::chrono::duration<double>(Clock::now() - turn_began).count();
  return spent_seconds() + now > runtime().settings.profile_budget_s;
}
thread_local Clock::time_point turn_began;

class Event {
 public:
  explicit Event(const Driver& driver) : driver_(driver) {
    if (driver.event_create(&event_, CU_EVENT_DEFAULT) != CUDA_SUCCESS) event_ = nullptr;
  }
  Event(Event&& other) noexcept : driver_(other.driver_), event_(std::exchange(other.event_, nullptr)) {}
  ~Event() {
    if (event_) driver_.event_destroy(event_);
  }
  bool record(CUstream stream) const { return event_ && driver_.event_record(event_, stream) == CUDA_SUCCESS; }
  CUevent get() const { return event_; }

 private:
  const Driver& driver_;
  CUevent event_ = nullptr;
};

// Linear interpolation between ranks, as numpy's default does.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

class Run {
 public:
  Run(const Driver& driver, const Subject& subject) : driver_(driver), subject_(subject) {}

  Candidate measure(Attempt& attempt) {
    Candidate c = attempt.candidate;
    if (!attempt.run) return c;
    for (const auto& output : subject_.outputs)
      if (output.bytes == 0) return refuse(c, CandidateStatus::Skipped, "the output's data type is not known");
    if (over_budget(turn_began)) return ++candidates_cut, refuse(c, CandidateStatus::Skipped, "the profile's budget is used up");
    const auto needed = output_bytes() + static_cast<std::size_t>(c.workspace_bytes.value_or(0));
    std::size_t free = 0, total = 0;
    if (driver_.memory_info(&free, &total) != CUDA_SUCCESS) free = 0;
    if (static_cast<double>(needed) > kMemoryShare * static_cast<double>(free)) {
      ++candidates_too_large;
      return refuse(c, CandidateStatus::NoMemory,
                    "trying it takes " + std::to_string(needed) + " bytes, more than 10 % of the free memory");
    }
    return run(attempt, c);
  }

 private:
  static Candidate refuse(Candidate c, CandidateStatus status, std::string reason) {
    c.status = status;
    c.reason = std::move(reason);
    return c;
  }

  std::size_t output_bytes() const {
    std::size_t sum = 0;
    for (const auto& output : subject_.outputs) sum += output.bytes;
    return sum;
  }

  Candidate run(Attempt& attempt, Candidate c) {
    std::vector<std::unique_ptr<Buffer>> outputs;
    std::vector<void*> pointers;
    for (const auto& output : subject_.outputs) {
      outputs.push_back(std::make_unique<Buffer>(driver_, subject_.stream, output.bytes));
      if (outputs.back()->failed()) return refuse(c, CandidateStatus::NoMemory, "no memory for its output");
      // All bits set is a NaN in every floating type: what a candidate does not write is seen in its error.
      driver_.fill_bytes(outputs.back()->address(), output.read ? 0 : 0xFF, output.bytes, subject_.stream);
      pointers.push_back(outputs.back()->pointer());
    }
    const Buffer workspace(driver_, subject_.stream, static_cast<std::size_t>(c.workspace_bytes.value_or(0)));
    if (workspace.failed()) return refuse(c, CandidateStatus::NoMemory, "no memory for its workspace");

    if (subject_.about_to_try) subject_.about_to_try(c);
    if (const cudnnStatus_t status = attempt.run(pointers, workspace.pointer()))
      return refuse(c, CandidateStatus::Unsupported, subject_.why(status));
    if (driver_.synchronize(subject_.stream) != CUDA_SUCCESS)
      return refuse(c, CandidateStatus::Unsupported, "the GPU reported an error");
    if (subject_.count_kernels) c.kernels = subject_.count_kernels([&] { return attempt.run(pointers, workspace.pointer()); });
    compare_output(*outputs.front(), c);
    return time(attempt, c, pointers, workspace.pointer());
  }

  void compare_output(const Buffer& output, Candidate& c) {
    const OutputBuffer& shape = subject_.outputs.front();
    std::vector<double> sample = sample_of(driver_, subject_.stream, output.address(), shape.bytes, shape.type);
    if (c.framework_choice) reference_ = sample;
    if (!sample.empty() && !reference_.empty()) c.error = relative_error(sample, reference_);
  }

  Candidate time(Attempt& attempt, Candidate c, const std::vector<void*>& pointers, void* workspace) {
    const Settings& settings = runtime().settings;
    const auto once = [&] { return attempt.run(pointers, workspace); };
    for (int i = 1; i < settings.profile_warmup; ++i) once();

    std::vector<double> times;
    if (const auto first = timed(1, once); !first.empty()) times = first;
    if (times.empty()) return refuse(c, CandidateStatus::Unsupported, "it could not be timed");
    const bool hopeless = best_ms_ > 0 && times.front() > kHopeless * best_ms_;
    if (!hopeless && settings.profile_repeats > 1) {
      const auto rest = timed(settings.profile_repeats - 1, once);
      times.insert(times.end(), rest.begin(), rest.end());
    }
    std::sort(times.begin(), times.end());
    c.samples = static_cast<int>(times.size());
    c.time_ms = quantile(times, 0.5);
    c.time_iqr_ms = quantile(times, 0.75) - quantile(times, 0.25);
    if (best_ms_ <= 0 || *c.time_ms < best_ms_) best_ms_ = *c.time_ms;
    if (hopeless) return refuse(c, CandidateStatus::TooSlow, "ten times slower than the best: timed once");
    c.status = CandidateStatus::Ok;
    return c;
  }

  // Queued without waiting in between, so that the host's part of a launch does not count.
  template <typename Once>
  std::vector<double> timed(int count, Once&& once) {
    std::vector<Event> events;
    for (int i = 0; i < 2 * count; ++i) events.emplace_back(driver_);
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(2 * i);
      if (!events[at].record(subject_.stream) || once() || !events[at + 1].record(subject_.stream)) return {};
    }
    if (driver_.event_synchronize(events.back().get()) != CUDA_SUCCESS) return {};
    std::vector<double> out;
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(2 * i);
      float ms = 0;
      if (driver_.event_elapsed(&ms, events[at].get(), events[at + 1].get()) != CUDA_SUCCESS) return {};
      out.push_back(static_cast<double>(ms));
    }
    return out;
  }

  const Driver& driver_;
  const Subject& subject_;
  std::vector<double> reference_;
  double best_ms_ = 0;
};

}  // namespace

bool may_measure(const Driver& driver, CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return driver.is_capturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

// Not without end: whoever measures waits for the GPU, which may wait for what this thread is to launch.
MeasuringTurn::MeasuringTurn(Wait wait)
    : taken_(wait == Wait::Yes ? place.try_lock_for(std::chrono::duration<double>(runtime().settings.profile_budget_s)) : place.try_lock()) {}

std::string MeasuringTurn::refused() {
  if (!taken_) return "another problem was being timed";
  const double budget = runtime().settings.profile_budget_s;
  const bool spent = spent_seconds() > budget;
  if (!spent && problems < kMostProblems) {
    turn_began = Clock::now();
    begun_ = true;
    ++problems;
    return {};
  }
  if (problems_cut++ == 0)
    say(spent ? "convpin: the profile's budget of " + four_digits(budget) +
                    " s is used up: further problems run without a profile (profile.budget sets it)\n"
              : "convpin: " + std::to_string(kMostProblems) + " problems are profiled: further ones run without a profile\n");
  return spent ? "the profile's budget is used up" : std::to_string(kMostProblems) + " problems are profiled already";
}

MeasuringTurn::~MeasuringTurn() {
  if (begun_) spent_us += std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - turn_began).count();
  if (taken_) place.unlock();
}

void renew_measuring_in_child() noexcept { new (&place) std::timed_mutex; }

std::vector<Candidate> measure(const Driver& driver, const Subject& subject) {
  const CudaScope scope(driver);
  Run run(driver, subject);
  std::vector<Candidate> out;
  for (const auto& make : subject.attempts) {
    Attempt attempt = make();
    out.push_back(run.measure(attempt));
  }
  driver.synchronize(subject.stream);  // buffers of ours are given back before the application goes on
  return out;
}

std::string measuring_summary() {
  int waiting = runtime().unseen_profiles;
  each_problem([&](const ProblemState& state) { waiting += state.calls > 0 && state.profile == ProfileState::Wanted; });
  const std::string not_met = waiting == 0 ? ""
                                           : "convpin: problems that were never profiled (they ran inside a capture only, or on "
                                             "data that was set where it could not be seen): " + std::to_string(waiting) + "\n";
  if (problems == 0) return not_met;
  std::string line = "convpin: profiling " + std::to_string(problems) + (problems == 1 ? " problem" : " problems") + " took " +
                     four_digits(spent_seconds()) + " s";
  if (candidates_cut > 0) line += "; candidates cut by the budget: " + std::to_string(candidates_cut);
  if (candidates_too_large > 0) line += "; candidates left out for their memory: " + std::to_string(candidates_too_large);
  if (problems_cut > 0) line += "; problems not profiled: " + std::to_string(problems_cut);
  return line + "\n" + not_met;
}

}  // namespace convpin
