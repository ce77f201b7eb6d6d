#include "rpc/testing/fakes/fake_leaving_member.h"

#include "absl/strings/str_cat.h"

namespace hawser::rpc {

absl::StatusOr<std::string> FakeLeavingMember::ReadLease(Incarnation worker) {
  const auto found = leases_.find(worker);
  if (found != leases_.end()) return found->second;
  return absl::StrCat(++num_reads_);
}

}  // namespace hawser::rpc
