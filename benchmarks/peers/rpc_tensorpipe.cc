// TensorPipe's side of the benchmark of remote calls: two processes of one
// machine.
//
//   rpc_tensorpipe TRANSPORT CHANNEL    shm or uv; cma or basic
//
// Prints "ready TRANSPORT CHANNEL". Then reads requests from standard input,
// one per line, and replies with a number, in the units of rpc_side.h. The
// benchmark compiles this file against the system's library when it runs.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tensorpipe/tensorpipe.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSmallBytes = 64;
// Number of buffers into which the callee reads. It reuses them.
constexpr size_t kBuffers = 8;

void Require(const tensorpipe::Error& error) {
  if (!error) return;
  std::cerr << error.what() << "\n";
  std::_Exit(1);
}

std::shared_ptr<tensorpipe::Context> NewContext(const std::string& transport,
                                                const std::string& channel) {
  auto context = std::make_shared<tensorpipe::Context>();
  if (transport == "shm") {
    context->registerTransport(0, transport,
                               tensorpipe::transport::shm::create());
  } else {
    context->registerTransport(0, transport,
                               tensorpipe::transport::uv::create());
  }
  auto made = channel == "cma" ? tensorpipe::channel::cma::create()
                               : tensorpipe::channel::basic::create();
  if (!made->isViable()) {
    std::cerr << "channel " << channel << " does not work on this machine\n";
    std::_Exit(1);
  }
  context->registerChannel(0, channel, std::move(made));
  return context;
}

// Replies to each message with its payload, or with an empty message.
class Callee : public std::enable_shared_from_this<Callee> {
 public:
  explicit Callee(std::shared_ptr<tensorpipe::Pipe> pipe)
      : pipe_(std::move(pipe)), buffers_(kBuffers) {}

  void Take() {
    auto self = shared_from_this();
    pipe_->readDescriptor(
        [self](const tensorpipe::Error& error, tensorpipe::Descriptor what) {
          // The caller has exited.
          if (error) std::_Exit(0);
          self->Read(what);
        });
  }

 private:
  void Read(const tensorpipe::Descriptor& what) {
    tensorpipe::Allocation places;
    std::string* echo = nullptr;
    for (const auto& payload : what.payloads) {
      echo = &Place(payload.length);
      places.payloads.push_back({echo->data()});
    }
    for (const auto& tensor : what.tensors) {
      places.tensors.push_back(
          {tensorpipe::CpuBuffer{Place(tensor.length).data()}});
    }
    auto self = shared_from_this();
    pipe_->read(places, [self, echo](const tensorpipe::Error& error) {
      Require(error);
      self->Take();
      tensorpipe::Message answer;
      if (echo != nullptr) {
        answer.payloads.push_back({echo->data(), kSmallBytes, ""});
      }
      self->pipe_->write(std::move(answer), Require);
    });
  }

  std::string& Place(size_t bytes) {
    std::string& buffer = buffers_[next_++ % kBuffers];
    if (buffer.size() < bytes) buffer.resize(bytes);
    return buffer;
  }

  const std::shared_ptr<tensorpipe::Pipe> pipe_;
  std::vector<std::string> buffers_;
  size_t next_ = 0;
};

[[noreturn]] void Serve(int urls, const std::string& transport,
                        const std::string& channel) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto context = NewContext(transport, channel);
  auto listener =
      context->listen({transport == "shm" ? "shm://" : "uv://127.0.0.1"});
  listener->accept([](const tensorpipe::Error& error,
                      std::shared_ptr<tensorpipe::Pipe> pipe) {
    Require(error);
    std::make_shared<Callee>(std::move(pipe))->Take();
  });
  const std::string url = listener->url(transport) + "\n";
  if (write(urls, url.data(), url.size()) < 0) std::_Exit(1);
  while (true) pause();
}

class Caller {
 public:
  explicit Caller(std::shared_ptr<tensorpipe::Pipe> pipe)
      : pipe_(std::move(pipe)), small_(kSmallBytes, 'x'), back_(small_) {}

  // Median round trip in microseconds, with 64 bytes in each direction.
  double SmallCall(int calls) {
    std::vector<double> times = RoundTrips(calls, [this] {
      tensorpipe::Message message;
      message.payloads.push_back({small_.data(), small_.size(), ""});
      return message;
    });
    std::nth_element(times.begin(), times.begin() + times.size() / 2,
                     times.end());
    return times[times.size() / 2] * 1e6;
  }

  // Bytes per second with one tensor in flight.
  double OneWay(int calls, size_t bytes) {
    if (tensor_.size() < bytes) tensor_.resize(bytes, 'x');
    const auto make = [this, bytes] {
      tensorpipe::Message message;
      tensorpipe::Message::Tensor tensor;
      tensor.buffer = tensorpipe::CpuBuffer{tensor_.data()};
      tensor.length = bytes;
      message.tensors.push_back(std::move(tensor));
      return message;
    };
    // The callee allocates its buffers before the measurement.
    RoundTrips(kBuffers, make);
    double total = 0;
    for (const double time : RoundTrips(calls, make)) total += time;
    return static_cast<double>(calls) * static_cast<double>(bytes) / total;
  }

 private:
  // Times of the round trips in seconds. Each one starts after the reply to the
  // previous one, in the thread that received it.
  std::vector<double> RoundTrips(
      int count, const std::function<tensorpipe::Message()>& make) {
    std::vector<double> times;
    std::promise<void> ended;
    Clock::time_point start;
    std::function<void()> go = [&] {
      start = Clock::now();
      pipe_->write(make(), Require);
      pipe_->readDescriptor(
          [&](const tensorpipe::Error& error, tensorpipe::Descriptor what) {
            Require(error);
            tensorpipe::Allocation places;
            for (size_t i = 0; i < what.payloads.size(); ++i) {
              places.payloads.push_back({back_.data()});
            }
            pipe_->read(places, [&](const tensorpipe::Error& read_error) {
              Require(read_error);
              times.push_back(
                  std::chrono::duration<double>(Clock::now() - start).count());
              if (times.size() < static_cast<size_t>(count)) {
                go();
              } else {
                ended.set_value();
              }
            });
          });
    };
    go();
    ended.get_future().get();
    return times;
  }

  const std::shared_ptr<tensorpipe::Pipe> pipe_;
  std::string small_;
  std::string back_;
  std::string tensor_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string transport = argv[1];
  const std::string channel = argv[2];
  int urls[2];
  if (pipe(urls) != 0) return 1;
  if (fork() == 0) Serve(urls[1], transport, channel);
  std::string url;
  for (char c = 0; read(urls[0], &c, 1) == 1 && c != '\n';) url += c;
  auto context = NewContext(transport, channel);
  Caller caller(context->connect(url));
  std::cout << "ready " << transport << " " << channel << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream request(line);
    std::string what;
    int calls = 0;
    size_t bytes = 0;
    request >> what >> calls >> bytes;
    if (what == "small_call") {
      std::cout << caller.SmallCall(calls) << std::endl;
    } else if (what == "one_way") {
      std::cout << caller.OneWay(calls, bytes) << std::endl;
    } else {
      std::cout << "unknown request" << std::endl;
    }
  }
  std::_Exit(0);
}
