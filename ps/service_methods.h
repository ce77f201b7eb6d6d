// Methods by which workers serve tables to each other: proto/ps.proto.

#ifndef HAWSER_PS_SERVICE_METHODS_H_
#define HAWSER_PS_SERVICE_METHODS_H_

#include "proto/ps.pb.h"
#include "rpc/functions/service_method.h"

namespace hawser::ps {

inline constexpr rpc::ServiceMethod<v1::CreateTableRequest,
                                    v1::CreateTableReply>
    kCreateTableMethod{"hawser.v1.TableService.CreateTable"};
inline constexpr rpc::ServiceMethod<v1::DescribeTableRequest,
                                    v1::DescribeTableReply>
    kDescribeTableMethod{"hawser.v1.TableService.DescribeTable"};
inline constexpr rpc::ServiceMethod<v1::PullRequest, v1::PullReply> kPullMethod{
    "hawser.v1.TableService.Pull"};
inline constexpr rpc::ServiceMethod<v1::PushRequest, v1::PushReply> kPushMethod{
    "hawser.v1.TableService.Push"};

inline constexpr rpc::ServiceMethod<v1::PullSumsRequest, v1::PullSumsReply>
    kPullSumsMethod{"hawser.v1.TableService.PullSums"};
inline constexpr rpc::ServiceMethod<v1::PushSumsRequest, v1::PushSumsReply>
    kPushSumsMethod{"hawser.v1.TableService.PushSums"};
inline constexpr rpc::ServiceMethod<v1::JoinClockRequest, v1::JoinClockReply>
    kJoinClockMethod{"hawser.v1.TableService.JoinClock"};
inline constexpr rpc::ServiceMethod<v1::AdvanceClockRequest,
                                    v1::AdvanceClockReply>
    kAdvanceClockMethod{"hawser.v1.TableService.AdvanceClock"};
inline constexpr rpc::ServiceMethod<v1::LeaveClockRequest, v1::LeaveClockReply>
    kLeaveClockMethod{"hawser.v1.TableService.LeaveClock"};
inline constexpr rpc::ServiceMethod<v1::SaveTableRequest, v1::SaveTableReply>
    kSaveTableMethod{"hawser.v1.TableService.SaveTable"};
inline constexpr rpc::ServiceMethod<v1::RestoreTableRequest,
                                    v1::RestoreTableReply>
    kRestoreTableMethod{"hawser.v1.TableService.RestoreTable"};
inline constexpr rpc::ServiceMethod<v1::DropTableRequest, v1::DropTableReply>
    kDropTableMethod{"hawser.v1.TableService.DropTable"};
inline constexpr rpc::ServiceMethod<v1::ListTablesRequest, v1::ListTablesReply>
    kListTablesMethod{"hawser.v1.TableService.ListTables"};

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVICE_METHODS_H_
