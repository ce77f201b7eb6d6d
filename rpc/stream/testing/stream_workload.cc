#include "rpc/stream/testing/stream_workload.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/coroutine.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/functions/function.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream_limits.h"
#include "rpc/stream/stream_service.h"

namespace hawser::rpc {
namespace {

// Writes 0, 1, ... up to the second number, and fails after that if the third
// is 1.
constexpr StreamFunction<int64_t(int64_t, int64_t, int64_t)> kCount{
    "test.Count"};
// Completes after the given number of milliseconds.
constexpr Function<void(int64_t)> kPause{"test.Pause"};
constexpr int kMaxStreams = 4;

}  // namespace

void StreamWorkload::AddService(AgentOptions& options) {
  // Few, so that places which are not given back are missed.
  options.services.push_back(std::make_unique<StreamService>(
      StreamLimits{.max_streams_per_reader = kMaxStreams}));
}

void StreamWorkload::Attach(ClusterSimulation* job) {
  job_ = job;
  EXPECT_THAT(RegisterStream(job_->registry(), kCount,
                             [this](StreamWriter<int64_t> out, int64_t stream,
                                    int64_t count, int64_t fails) {
                               return Write(std::move(out), stream, count,
                                            fails != 0);
                             }),
              async::IsOk());
  EXPECT_THAT(
      job_->registry().Register(
          kPause, [this](int64_t ms) { return After(absl::Milliseconds(ms)); }),
      async::IsOk());
}

async::Future<void> StreamWorkload::Write(StreamWriter<int64_t> out,
                                          int64_t stream, int64_t count,
                                          bool fails) {
  Trace& trace = traces_[stream];
  if (++trace.num_started > 1) {
    job_->Fail(absl::StrCat("stream ", stream, " began twice"));
  }
  absl::Status status;
  for (int64_t i = 0; i < count && status.ok(); ++i) {
    status = co_await out.Write(i);
    if (!status.ok()) break;
    ++trace.num_written;
    // S3: a window at the writer, a window in transit or at the reader, and
    // one value accepted by Write.
    if (trace.num_written > trace.num_read + int64_t{2} * trace.window + 1) {
      job_->Fail(absl::StrCat("stream ", stream, " is ", trace.num_written,
                              " values long, of which ", trace.num_read,
                              " were taken"));
    }
  }
  trace.writer_ended = true;
  if (!status.ok()) co_return status;
  if (fails) co_return absl::DataLossError("no more");
  co_return absl::OkStatus();
}

async::Future<void> StreamWorkload::Read(Agent& agent,
                                         StreamReader<int64_t> reader,
                                         int64_t stream, int64_t to_read,
                                         int64_t pause_ms) {
  Trace& trace = traces_[stream];
  absl::Status error;
  bool ended = false;
  while (trace.num_read < to_read && !ended) {
    if (pause_ms > 0) {
      (void)co_await agent.Async(
          agent.info(), {.timeout = absl::Milliseconds(200)}, kPause, pause_ms);
    }
    absl::StatusOr<std::optional<int64_t>> value = co_await reader.Next();
    if (!value.ok()) {
      error = value.status();
      break;
    }
    ended = !value->has_value();
    if (!ended && **value != trace.num_read++) {
      job_->Fail(absl::StrCat("stream ", stream, " gave ", **value,
                              " as its value ", trace.num_read));
    }
  }
  job_->Note(absl::StrCat("stream ", stream, " ends after ", trace.num_read,
                          ": ", error.ToString()));
  trace.reader_ended = true;
  CheckEnd(stream, ended, error);
  co_return absl::OkStatus();
}

void StreamWorkload::CheckEnd(int64_t stream, bool ended,
                              const absl::Status& error) {
  const Trace& trace = traces_[stream];
  if (ended && (trace.fails || trace.num_read != trace.count)) {
    job_->Fail(absl::StrCat("stream ", stream, " ended well after ",
                            trace.num_read, " of ", trace.count));
  }
  switch (error.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kCancelled:
      return;
    case absl::StatusCode::kDataLoss:
      if (trace.fails && trace.num_read == trace.count) return;
      break;
    case absl::StatusCode::kResourceExhausted:
      if (trace.num_started == 0) return;
      break;
    case absl::StatusCode::kNotFound:
      // The writer and its successor of the same name have departed.
      if (trace.num_started == 0) return;
      break;
    default:
      break;
  }
  job_->Fail(absl::StrCat("stream ", stream, " ended after ", trace.num_read,
                          " of ", trace.count, ": ", error.ToString()));
}

async::Future<void> StreamWorkload::After(absl::Duration time) {
  async::Promise<void> promise;
  async::Future<void> future = promise.future();
  job_->clock().CallAfter(time, [promise = std::move(promise)]() mutable {
    promise.Set(absl::OkStatus());
  });
  return future;
}

int64_t StreamWorkload::Begin(int64_t count, bool fails, int window) {
  const int64_t stream = static_cast<int64_t>(traces_.size()) + 1;
  Trace& trace = traces_[stream];
  trace.count = count;
  trace.fails = fails;
  trace.window = window;
  return stream;
}

void StreamWorkload::OpenRandomStream() {
  async::RandomSource& random = job_->random();
  const int from = static_cast<int>(random.Below(job_->num_workers()));
  const int to = static_cast<int>(random.Below(job_->num_workers()));
  const auto count = static_cast<int64_t>(random.Below(20));
  const bool fails = random.Below(4) == 0;
  const int window = 1 + static_cast<int>(random.Below(6));
  // Some readers cancel before the end.
  const int64_t to_read =
      random.Below(4) == 0 ? static_cast<int64_t>(random.Below(10)) : 1000;
  const auto pause_ms = static_cast<int64_t>(random.Below(100));
  const auto timeout = absl::Milliseconds(500 + random.Below(10000));
  if (job_->agent(from) == nullptr) return;
  const int64_t stream = Begin(count, fails, window);
  Open(stream, from, to, {.timeout = timeout, .window = window}, to_read,
       pause_ms);
}

void StreamWorkload::Open(int64_t stream, int from, int to,
                          const StreamOptions& options, int64_t to_read,
                          int64_t pause_ms) {
  const Trace& trace = traces_[stream];
  job_->Note(absl::StrCat("stream ", stream, " of ", trace.count, " from w", to,
                          " to w", from));
  absl::StatusOr<StreamReader<int64_t>> reader =
      Stream(*job_->agent(from), absl::StrCat("w", to), options, kCount, stream,
             trace.count, trace.fails ? 1 : 0);
  if (!reader.ok()) {
    // The stream was not started.
    traces_[stream].reader_ended = true;
    return;
  }
  (void)Read(*job_->agent(from), *std::move(reader), stream, to_read, pause_ms);
}

void StreamWorkload::CheckEnds() {
  for (const auto& [stream, trace] : traces_) {
    if (!trace.reader_ended) {
      job_->Fail(
          absl::StrCat("stream ", stream, " does not end for its ", "reader"));
    }
    if (trace.num_started > 0 && !trace.writer_ended) {
      job_->Fail(
          absl::StrCat("stream ", stream, " does not end for its ", "writer"));
    }
  }
  for (int i = 0; i < job_->num_workers(); ++i) {
    if (job_->agent(i) == nullptr) continue;
    const int64_t num_open =
        job_->agent(i)->service<StreamService>()->num_open();
    if (num_open != 0) {
      job_->Fail(absl::StrCat("w", i, " has ", num_open, " streams left"));
    }
  }
}

void StreamWorkload::CheckThatAllCanStream(int rounds) {
  static_assert(kAllRounds > kMaxStreams);
  const auto first = static_cast<int64_t>(traces_.size()) + 1;
  for (int round = 0; round < rounds; ++round) {
    for (int from = 0; from < job_->num_workers(); ++from) {
      for (int to = 0; to < job_->num_workers(); ++to) {
        Open(Begin(10, /*fails=*/false, 4), from, to, {}, 1000,
             /*pause_ms=*/0);
      }
    }
    job_->Advance(absl::Seconds(1));
  }
  for (auto it = traces_.find(first); it != traces_.end(); ++it) {
    if (it->second.num_read != it->second.count) {
      job_->Fail(absl::StrCat("after convergence stream ", it->first, " gave ",
                              it->second.num_read, " values"));
    }
  }
}

}  // namespace hawser::rpc
