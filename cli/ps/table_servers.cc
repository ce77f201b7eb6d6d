#include "cli/ps/table_servers.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/ps.grpc.pb.h"

namespace hawser::cli {
namespace {

constexpr size_t kMaxConcurrent = 64;

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", text, "\"");
}

absl::Status NoSuchTable(const std::string& table,
                         const std::vector<TableServer>& servers) {
  std::set<std::string> names;
  for (const TableServer& server : servers) {
    if (!server.status.ok()) return server.status;
    for (const v1::TableStatus& status : server.reply.tables()) {
      names.insert(Quoted(status.table().name()));
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "no server of the job has table ", Quoted(table),
      names.empty()
          ? "; there are no tables"
          : absl::StrCat("; there are ", absl::StrJoin(names, ", "))));
}

}  // namespace

absl::StatusOr<std::vector<TableServer>> FindTableServers(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials,
    const std::string& name) {
  std::vector<rpc::WorkerInfo> members;
  if (name.empty()) {
    ASSIGN_OR_RETURN(members, MembersOf(flags, credentials));
  } else {
    ASSIGN_OR_RETURN(rpc::WorkerInfo member,
                     FindMember(flags, credentials, name));
    members.push_back(std::move(member));
  }
  std::vector<TableServer> asked(members.size());
  CallConcurrently(members.size(), [&](size_t i) {
    TableServer& server = asked[i];
    server.worker = members[i];
    server.client = std::make_shared<WorkerClient>(
        members[i], flags.job, CallerName(flags), credentials, flags.timeout());
    absl::StatusOr<v1::ListTablesReply> reply =
        server.client->CallMethod(&v1::TableService::Stub::ListTables,
                                  v1::ListTablesRequest(), flags.timeout());
    server.status = reply.status();
    if (reply.ok()) server.reply = *std::move(reply);
  });
  std::vector<TableServer> servers;
  for (TableServer& server : asked) {
    if (absl::IsUnimplemented(server.status)) continue;
    servers.push_back(std::move(server));
  }
  if (servers.empty()) {
    return absl::NotFoundError(
        name.empty()
            ? absl::StrCat("no worker of job '", flags.job, "' serves tables")
            : absl::StrCat("worker '", name, "' does not serve tables"));
  }
  return servers;
}

std::vector<TablePart> PartsOf(const std::string& table,
                               const std::vector<TableServer>& servers) {
  std::vector<TablePart> parts;
  for (const TableServer& server : servers) {
    for (const v1::TableStatus& status : server.reply.tables()) {
      if (status.table().name() == table) parts.push_back({&server, &status});
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const TablePart& a, const TablePart& b) {
                     return a.table->shards().first_shard() <
                            b.table->shards().first_shard();
                   });
  return parts;
}

bool IsComplete(const std::vector<TablePart>& parts) {
  if (parts.empty()) return false;
  const v1::TableDescription& table = parts[0].table->table();
  int64_t next = 0;
  for (const TablePart& part : parts) {
    const v1::TableShards& shards = part.table->shards();
    if (part.table->version() != parts[0].table->version() ||
        shards.first_shard() != next || shards.num_shards() < 1 ||
        shards.num_shards() > table.num_shards() - next ||
        !google::protobuf::util::MessageDifferencer::Equals(part.table->table(),
                                                            table)) {
      return false;
    }
    next += shards.num_shards();
  }
  return next == table.num_shards();
}

absl::StatusOr<std::vector<TablePart>> CompleteTable(
    const std::string& table, const std::vector<TableServer>& servers) {
  std::vector<TablePart> parts = PartsOf(table, servers);
  if (parts.empty()) return NoSuchTable(table, servers);
  if (IsComplete(parts)) return parts;
  for (const TableServer& server : servers) {
    if (!server.status.ok()) return server.status;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "table ", Quoted(table),
      " is not complete: `hawser ps tables` shows the shards that its servers "
      "hold"));
}

void CallConcurrently(size_t count, absl::FunctionRef<void(size_t)> call) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) call(i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(count, kMaxConcurrent); ++i) {
    threads.emplace_back(run);
  }
  run();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hawser::cli
