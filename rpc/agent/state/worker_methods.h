// Methods that every agent serves, besides calls of functions.

#ifndef HAWSER_RPC_AGENT_STATE_WORKER_METHODS_H_
#define HAWSER_RPC_AGENT_STATE_WORKER_METHODS_H_

#include "rpc/functions/method_definition.h"

namespace hawser::rpc {

inline constexpr MethodName kCallMethod{"hawser.v1.WorkerService.Call"};
inline constexpr MethodName kHeartbeatMethod{
    "hawser.v1.WorkerService.Heartbeat"};
inline constexpr MethodName kListFunctionsMethod{
    "hawser.v1.WorkerService.ListFunctions"};
inline constexpr MethodName kLeaveMethod{"hawser.v1.WorkerService.Leave"};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_STATE_WORKER_METHODS_H_
