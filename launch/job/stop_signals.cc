#include "launch/job/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hawser::launch {
namespace {

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopSignals::StopSignals(std::string name) : name_(std::move(name)) {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { Wait(); });
}

StopSignals::~StopSignals() {
  ended_ = true;
  // Ends the wait of that thread. A signal to the process could stay pending.
  pthread_kill(thread_.native_handle(), SIGINT);
  thread_.join();
}

void StopSignals::SetLine(telemetry::ProgressLine* line) {
  const async::MutexLock lock(&mutex_);
  line_ = line;
}

void StopSignals::Wait() {
  const sigset_t set = Signals();
  int received = 0;
  sigwait(&set, &received);
  if (ended_) return;
  // Locked until the end, so that the line is neither destroyed nor replaced.
  const async::MutexLock lock(&mutex_);
  if (line_ != nullptr) line_->Finish();
  if (!name_.empty()) {
    std::fprintf(stderr, "%s: stopped by %s\n", name_.c_str(),
                 strsignal(received));
  }
  _exit(128 + received);
}

}  // namespace hawser::launch
