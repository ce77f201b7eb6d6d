#include "launch/job/launched_process.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "launch/master_endpoint.h"
#include "store/endpoint.h"

namespace hawser::launch {
namespace {

// "server=1, trainer=2".
std::string Counts(const JobOptions& job) {
  return absl::StrJoin(job.roles, ", ",
                       [](std::string* out, const JobRole& role) {
                         absl::StrAppend(out, role.name, "=", role.count);
                       });
}

absl::Status CheckCount(const JobOptions& job, const std::string& what,
                        int started, int wanted) {
  if (started == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the launcher has started ", started, " ", what, ", but the job has ",
      Counts(job), ": change the launcher's numbers or the program's flags"));
}

// Sets the role of the rank if the first ranks have the first role.
void SetRoleOfRank(int rank, JobOptions& job) {
  for (const JobRole& role : job.roles) {
    if (rank < role.count) {
      job.role = role.name;
      job.index = rank;
      return;
    }
    rank -= role.count;
  }
}

}  // namespace

absl::StatusOr<JobOptions> AtPlace(JobOptions job, const ProcessPlace& place) {
  if (job.roles.empty() || !job.role.empty() || !place.rank.has_value() ||
      place.world_size.value_or(1) == 1) {
    return job;
  }
  RETURN_IF_ERROR(
      CheckCount(job, "processes", *place.world_size, job.world_size()));
  const int count = job.count(place.role);
  if (count > 0 && place.role_rank.has_value()) {
    RETURN_IF_ERROR(
        CheckCount(job, absl::StrCat("processes of the role ", place.role),
                   place.role_world_size.value_or(count), count));
    job.role = place.role;
    job.index = *place.role_rank;
  } else {
    SetRoleOfRank(*place.rank, job);
  }
  ASSIGN_OR_RETURN(const store::Endpoint endpoint,
                   MasterEndpoint(place.master_address, place.master_port));
  job.master = absl::StrCat("tcp://", store::ToString(endpoint));
  return job;
}

}  // namespace hawser::launch
