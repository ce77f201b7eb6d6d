// Fuzz test: arbitrary flags of `hawser run`, and descriptions of nodes that
// other launchers wrote into the store.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "bazel/fuzz/fuzz_input.h"
#include "launch/run/node.h"
#include "launch/run/process_plan.h"
#include "launch/run/run_options.h"

namespace hawser::launch {
namespace {

constexpr const char* kValues[] = {
    "",        "0",
    "1",       "4096",
    "auto",    "2:2",
    "0:3,1:2", "server=2,trainer=3",
    "65535",   "2147483647",
    "host:1",  "etcd://host:1/x?rank=1",
    "env://",  "tcp://[::1]:0",
};
// Above this, plans of the processes cost more than they tell.
constexpr int kMaxPlanned = 4096;

std::string MakeValue(fuzz::FuzzInput& input) {
  const size_t choice = input.Below(std::size(kValues) + 8);
  return choice < std::size(kValues) ? kValues[choice]
                                     : std::string(input.Bytes());
}

void ParseFlags(fuzz::FuzzInput& input) {
  RunFlags flags;
  for (std::string* value :
       {&flags.nproc_per_node, &flags.nnodes, &flags.node_rank,
        &flags.master_addr, &flags.master_port, &flags.rdzv_endpoint,
        &flags.rdzv_id, &flags.max_restarts, &flags.role, &flags.log_dir,
        &flags.redirects, &flags.tee, &flags.kill_delay}) {
    if (input.Bool()) *value = MakeValue(input);
  }
  flags.standalone = input.Bool();
  const absl::StatusOr<RunOptions> options = ParseRunFlags(flags, {"program"});
  if (!options.ok()) {
    HAWSER_CHECK(absl::IsInvalidArgument(options.status())) << options.status();
    return;
  }
  HAWSER_CHECK(options->node_rank >= 0);
  HAWSER_CHECK(options->node_rank < options->num_nodes);
  HAWSER_CHECK(!options->roles.empty());
  const Node node{.host = "host",
                  .roles = options->roles,
                  .num_nodes = options->num_nodes,
                  .max_restarts = options->max_restarts};
  const absl::StatusOr<Node> again = ParseNode(ToText(node));
  HAWSER_CHECK(again.ok()) << again.status();
  HAWSER_CHECK(ToText(*again) == ToText(node));
  for (int rank = 0; rank < 4; ++rank) (void)options->tee.Of(rank);
}

// A description of a node, or any text.
std::string MakeNode(fuzz::FuzzInput& input) {
  constexpr const char* kNumbers[] = {"1", "2", "4096", "2147483647", "0", ""};
  const auto number = [&] {
    return kNumbers[input.Below(std::size(kNumbers))];
  };
  if (input.Bool()) return std::string(input.Bytes());
  std::string text = absl::StrCat("host ", number(), " ", number(), " ");
  for (size_t i = input.Below(4); i > 0; --i) {
    absl::StrAppend(&text, input.Bool() ? "server=" : "trainer=", number(),
                    i > 1 ? "," : "");
  }
  return text;
}

void ParseNodes(fuzz::FuzzInput& input) {
  std::vector<Node> nodes;
  while (!input.empty() && nodes.size() < 4) {
    const absl::StatusOr<Node> node = ParseNode(MakeNode(input));
    if (!node.ok()) {
      HAWSER_CHECK(absl::IsInvalidArgument(node.status()));
      continue;
    }
    HAWSER_CHECK(node->num_processes() >= 1);
    nodes.push_back(*node);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].num_processes() > kMaxPlanned) continue;
    const std::vector<ProcessPlan> plans =
        PlanProcesses(nodes, static_cast<int>(i));
    HAWSER_CHECK(plans.size() == static_cast<size_t>(nodes[i].num_processes()));
    for (const ProcessPlan& plan : plans) {
      HAWSER_CHECK(plan.rank >= 0 && plan.rank < plan.world_size);
      HAWSER_CHECK(plan.role_rank >= 0);
    }
  }
}

}  // namespace
}  // namespace hawser::launch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::fuzz::FuzzInput input(data, size);
  if (input.Bool()) {
    hawser::launch::ParseFlags(input);
  } else {
    hawser::launch::ParseNodes(input);
  }
  return 0;
}
