#include "benchmarks/job_processes.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "async/status_macros.h"

namespace hawser::benchmarks {
namespace {

// A port on which no process listens now. All workers must know the port of the
// store before rank 0 has started.
absl::StatusOr<int> FreePort() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool found =
      fd >= 0 && bind(fd, any, size) == 0 && getsockname(fd, any, &size) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!found) return absl::ErrnoToStatus(error, "cannot find a free port");
  return ntohs(address.sin_port);
}

// Reads the reply to `request`, after late ones to earlier requests.
absl::StatusOr<int64_t> ReceiveNumber(ChildProcess& process,
                                      const std::string& request,
                                      absl::Time deadline) {
  for (;;) {
    ASSIGN_OR_RETURN(const std::string line, process.Receive(deadline));
    absl::string_view reply = line;
    if (!absl::ConsumePrefix(&reply, request + ": ")) continue;
    int64_t number = 0;
    if (absl::ConsumePrefix(&reply, "ok ") &&
        absl::SimpleAtoi(reply, &number)) {
      return number;
    }
    return absl::InternalError(reply);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobProcesses>> JobProcesses::Start(
    int num_workers) {
  ASSIGN_OR_RETURN(const int port, FreePort());
  std::unique_ptr<JobProcesses> job(new JobProcesses);
  for (int rank = 0; rank < num_workers; ++rank) {
    ASSIGN_OR_RETURN(
        auto process,
        ChildProcess::Start({"/proc/self/exe", absl::StrCat("--rank=", rank),
                             absl::StrCat("--num_workers=", num_workers),
                             absl::StrCat("--master=127.0.0.1:", port)}));
    job->processes_.push_back(std::move(process));
  }
  return job;
}

std::vector<int> JobProcesses::RanksFrom(int first) const {
  std::vector<int> ranks(static_cast<size_t>(num_workers() - first));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

absl::Status JobProcesses::Send(const std::vector<int>& ranks,
                                const std::string& request) {
  request_ = request;
  for (const int rank : ranks) {
    const absl::Status status = Process(rank).Send(request);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(request, ": rank ", rank,
                                                      ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> JobProcesses::Receive(
    const std::vector<int>& ranks, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::vector<int64_t> numbers;
  absl::Status first_error;
  int first_failed = 0;
  for (const int rank : ranks) {
    const absl::StatusOr<int64_t> number =
        ReceiveNumber(Process(rank), request_, deadline);
    if (number.ok()) {
      numbers.push_back(*number);
    } else if (first_error.ok()) {
      first_error = number.status();
      first_failed = rank;
    }
  }
  if (first_error.ok()) return numbers;
  return absl::Status(
      first_error.code(),
      absl::StrCat(request_, ": ", ranks.size() - numbers.size(), " of ",
                   ranks.size(), " workers failed; rank ", first_failed, ": ",
                   first_error.message()));
}

absl::Status JobProcesses::CheckPending(const std::vector<int>& ranks,
                                        const std::string& request) {
  for (const int rank : ranks) {
    const absl::Status reply =
        ReceiveNumber(Process(rank), request, absl::Now()).status();
    if (absl::IsDeadlineExceeded(reply)) continue;
    return absl::Status(
        absl::IsUnavailable(reply) ? reply.code() : absl::StatusCode::kInternal,
        absl::StrCat(request, ": rank ", rank, " did not wait: ",
                     reply.ok() ? "it is done" : reply.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> JobProcesses::Ask(
    const std::vector<int>& ranks, const std::string& request,
    absl::Duration timeout) {
  RETURN_IF_ERROR(Send(ranks, request));
  return Receive(ranks, timeout);
}

}  // namespace hawser::benchmarks
