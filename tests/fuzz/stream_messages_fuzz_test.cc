// Fuzz test: sequences of messages of two hostile members that read streams of
// this worker.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/coroutine.h"
#include "async/future.h"
#include "bazel/fuzz/fuzz_input.h"
#include "proto/stream.pb.h"
#include "rpc/functions/function_registry.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_methods.h"
#include "rpc/stream/stream_service.h"
#include "tests/fuzz/hostile_peers.h"

namespace hawser::tests {
namespace {

using ::hawser::async::Future;

constexpr rpc::StreamFunction<int64_t(int64_t)> kCount{"Count"};
constexpr rpc::StreamFunction<int64_t()> kLater{"Later"};

constexpr int64_t kMaxPerReader = 4;

class Run {
 public:
  explicit Run(fuzz::FuzzInput input) : input_(input), peers_(&input_) {
    absl::Status status;
    status.Update(rpc::RegisterStream(
        peers_.host().registry(), kCount,
        [](rpc::StreamWriter<int64_t> out, int64_t count) -> Future<void> {
          absl::Status written;
          for (int64_t i = 0; i < count && written.ok(); ++i) {
            written = co_await out.Write(i);
          }
          co_return written;
        }));
    // Writes what the input says, and ends when it says so.
    status.Update(rpc::RegisterStream(peers_.host().registry(), kLater,
                                      [this](rpc::StreamWriter<int64_t> out) {
                                        writers_.push_back(std::move(out));
                                        return ends_.emplace_back().future();
                                      }));
    HAWSER_CHECK(status.ok()) << status;
    peers_.Start(service_);
    peers_.maker().OfferStrings(
        "hawser.v1.StreamOpenRequest.function",
        {std::string(kCount.name()), std::string(kLater.name())});
    peers_.maker().OfferStrings("hawser.v1.StreamOpenRequest.signature",
                                {kCount.Signature(), kLater.Signature()});
    v1::ValueList ten;
    ten.add_values()->set_int_value(10);
    peers_.maker().Offer(ten);
    peers_.maker().Offer(v1::ValueList());
  }

  void Play() {
    while (!input_.empty()) {
      Step();
      peers_.host().executor().RunAll();
      HAWSER_CHECK(service_.num_open() <= kMaxPerReader * peers_.kNumPeers);
    }
    Finish();
  }

 private:
  // Sequence numbers in order, or others.
  void Next() {
    const size_t peer = peers_.Choose();
    peers_.maker().OfferNumbers("hawser.v1.StreamNextRequest.sequence",
                                {next_[peer]});
    peers_.maker().OfferNumbers("hawser.v1.StreamNextRequest.acknowledged",
                                {next_[peer], 0});
    const auto request = peers_.maker().Make<v1::StreamNextRequest>();
    next_[peer] = request.sequence() + 1;
    (void)peers_.Call(rpc::kStreamNextMethod, peer, request);
  }

  void Write() {
    if (writers_.empty()) return;
    (void)writers_[input_.Below(writers_.size())].Write(input_.Byte());
  }

  void End() {
    if (ends_.empty()) return;
    const size_t ended = input_.Below(ends_.size());
    ends_[ended].Set(input_.Bool() ? absl::OkStatus() : peers_.MadeUpError());
    ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(ended));
  }

  void Step() {
    switch (input_.Below(12)) {
      case 0:
      case 1:
      case 2:
        peers_.CallByInput(rpc::kStreamOpenMethod);
        break;
      case 3:
        peers_.CallByInput(rpc::kStreamCloseMethod);
        break;
      case 4:
      case 5:
        Write();
        break;
      case 6:
        End();
        break;
      case 7:
        peers_.host().clock().AdvanceBy(absl::Seconds(1 + input_.Below(64)));
        break;
      case 8:
        peers_.CancelCall();
        break;
      case 9:
        if (input_.Below(4) == 3) peers_.Lose(peers_.Choose());
        break;
      default:
        Next();
        break;
    }
  }

  // Streams end with their readers, also those whose functions go on.
  void Finish() {
    for (size_t peer = 0; peer < peers_.kNumPeers; ++peer) peers_.Lose(peer);
    HAWSER_CHECK(service_.num_open() == 0) << service_.num_open();
    for (rpc::StreamWriter<int64_t>& writer : writers_) {
      const Future<void> written = writer.Write(1);
      HAWSER_CHECK(written.ready() && !written.result().ok());
    }
    service_.Interrupt();
  }

  fuzz::FuzzInput input_;
  HostilePeers peers_;
  rpc::StreamService service_{{.max_streams_per_reader = kMaxPerReader}};
  uint64_t next_[HostilePeers::kNumPeers] = {0, 0};
  std::vector<rpc::StreamWriter<int64_t>> writers_;
  std::vector<async::Promise<void>> ends_;
};

}  // namespace
}  // namespace hawser::tests

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::tests::Run(hawser::fuzz::FuzzInput(data, size)).Play();
  return 0;
}
