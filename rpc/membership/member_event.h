// Change of a job's membership.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBER_EVENT_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBER_EVENT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Each incarnation joins once, and then leaves or is lost, once.
struct MemberEvent {
  enum class Kind { kJoined, kLeft, kLost };

  Kind kind = Kind::kJoined;
  WorkerInfo worker;
  // Human-readable reason why the worker was lost.
  std::string reason = {};
};

using MemberCallback = std::function<void(const MemberEvent& event)>;

// Identifies a watch of one agent.
enum class MemberWatch : uint64_t {};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBER_EVENT_H_
