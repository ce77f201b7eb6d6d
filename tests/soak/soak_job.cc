#include "tests/soak/soak_job.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/same_host/tests/filesystem_footprint.h"

namespace hawser::tests {
namespace {

constexpr char kHost[] = "host";
constexpr int kNumServers = 3;
constexpr int kNumTrainers = 4;

// docs/rpc/guarantees.md, G10, and docs/reliability.md.
constexpr absl::Duration kDeadLimit = absl::Milliseconds(3500);
constexpr absl::Duration kStoppedLimit = absl::Seconds(12);
constexpr absl::Duration kFencedLimit = absl::Seconds(10);
// A process of these tests joins in less than a second on an idle machine; the
// name of a dead one is taken over within 5 s.
constexpr absl::Duration kJoinLimit = absl::Seconds(30);
// Longer than the timeout of a step.
constexpr absl::Duration kStepLimit = absl::Seconds(75);

int64_t NowNanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

int64_t Number(const std::string& text) {
  int64_t number = -1;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

}  // namespace

bool SoakJob::Start() {
  members_.clear();
  master_ = "127.0.0.1:0";
  const auto add = [&](std::string name) {
    members_.push_back(std::make_unique<Member>());
    members_.back()->name = std::move(name);
    members_.back()->rank = static_cast<int>(members_.size()) - 1;
  };
  add(kHost);
  for (int i = 0; i < kNumServers; ++i) add(absl::StrCat("server", i));
  for (int i = 0; i < kNumTrainers; ++i) add(absl::StrCat("trainer", i));
  for (const auto& member : members_) {
    if (!StartMember(*member)) return false;
  }
  ExpectProgress();
  return true;
}

void SoakJob::Leave() {
  // The host ends last, since the others need its store to leave.
  for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
    (*it)->process->WriteLine("leave");
    EXPECT_EQ(AwaitEnd(**it, absl::Minutes(1) + options_.slack), 0)
        << (*it)->name;
  }
  members_.clear();
}

std::vector<std::string> SoakJob::names() const {
  std::vector<std::string> names;
  for (const auto& member : members_) {
    if (member->name != kHost) names.push_back(member->name);
  }
  return names;
}

void SoakJob::KillAndRestart(const std::vector<std::string>& victims) {
  std::vector<std::string> incarnations;
  for (const std::string& name : victims) {
    incarnations.push_back(Find(name).incarnation);
    victims_[incarnations.back()] = name;
  }
  for (const std::string& name : victims) {
    EXPECT_THAT(rpc::FilesystemFootprintOf(Find(name).process->pid()),
                testing::IsEmpty());
  }
  const int64_t since = NowNanoseconds();
  for (const std::string& name : victims) Find(name).process->Signal(SIGKILL);
  ExpectTold(victims, incarnations, since, kDeadLimit);
  Restart(victims);
}

void SoakJob::StopAndRestart(const std::string& victim) {
  Member& member = Find(victim);
  const std::string incarnation = member.incarnation;
  victims_[incarnation] = victim;
  const int64_t since = NowNanoseconds();
  member.process->Signal(SIGSTOP);
  ExpectTold({victim}, {incarnation}, since, kStoppedLimit);
  member.process->Signal(SIGCONT);
  EXPECT_TRUE(
      RunUntil([&] { return member.fenced; }, kFencedLimit + options_.slack))
      << victim << " was stopped, but does not know that it was declared lost";
  EXPECT_EQ(AwaitEnd(member, kFencedLimit + options_.slack), 3) << victim;
  Restart({victim});
}

void SoakJob::KillHostAndRestart() {
  const int64_t since = NowNanoseconds();
  Find(kHost).process->Signal(SIGKILL);
  std::vector<Member*> others;
  for (const auto& member : members_) {
    if (member->name != kHost) others.push_back(member.get());
  }
  for (Member* member : others) {
    member->process->WriteLine(absl::StrCat("probe ", kHost));
  }
  for (Member* member : others) {
    if (!RunUntil([&] { return member->host_unreachable.has_value(); },
                  kDeadLimit + options_.slack)) {
      ADD_FAILURE() << member->name << " can call the host, which is dead";
      continue;
    }
    told_.Add(absl::Nanoseconds(*member->host_unreachable - since));
  }
  for (Member* member : others) {
    member->process->WriteLine("stop");
    EXPECT_EQ(AwaitEnd(*member, absl::Seconds(20) + options_.slack), 0)
        << member->name << " stops without the store";
  }
  EXPECT_TRUE(Start());
}

void SoakJob::RunFor(absl::Duration time) {
  (void)RunUntil([] { return false; }, time);
}

void SoakJob::Pause() { SendAll("pause"); }

void SoakJob::Resume() { SendAll("resume"); }

std::map<std::string, SoakJob::Census> SoakJob::AwaitCensus(
    const std::function<std::string(const Census& census)>& condition) {
  const absl::Time deadline = absl::Now() + absl::Minutes(1) + options_.slack;
  std::map<std::string, Census> all;
  for (const auto& member : members_) {
    while (true) {
      member->census.reset();
      member->process->WriteLine("census");
      if (!RunUntil([&] { return member->census.has_value(); },
                    absl::Minutes(1) + options_.slack)) {
        ADD_FAILURE() << member->name << " does not reply";
        break;
      }
      const std::string violation = condition(*member->census);
      if (violation.empty()) break;
      if (absl::Now() > deadline) {
        ADD_FAILURE() << member->name << ": " << violation;
        break;
      }
    }
    if (member->census.has_value()) all[member->name] = *member->census;
  }
  return all;
}

bool SoakJob::StartMember(Member& member) {
  std::vector<std::string> arguments = {
      absl::StrCat("--store=tcp://", master_),
      absl::StrCat("--name=", member.name),
      absl::StrCat("--rank=", member.rank),
      absl::StrCat("--seed=", options_.seed + ++num_starts_)};
  if (IsTrainer(member)) {
    arguments.push_back(absl::StrCat(
        "--interval=", absl::FormatDuration(options_.step_interval)));
  }
  member.incarnation.clear();
  member.fenced = false;
  member.steps = 0;
  member.failed_steps = 0;
  member.process =
      std::make_unique<ReportingProcess>("tests/soak/soak_worker", arguments);
  if (RunUntil([&] { return !member.incarnation.empty(); },
               kJoinLimit + options_.slack)) {
    return true;
  }
  ADD_FAILURE() << member.name << " does not join";
  return false;
}

SoakJob::Member& SoakJob::Find(const std::string& name) {
  const auto found =
      std::find_if(members_.begin(), members_.end(),
                   [&](const auto& member) { return member->name == name; });
  return **found;
}

bool SoakJob::IsTrainer(const Member& member) const {
  return absl::StartsWith(member.name, "trainer");
}

void SoakJob::Handle(Member& member, const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words[0] == "ready" && words.size() == 3) {
    member.incarnation = words[1];
    if (member.name == kHost) master_ = words[2];
  } else if (words[0] == "lost" && words.size() == 4) {
    member.losses[words[2]] = Number(words[3]);
    EXPECT_TRUE(victims_.contains(words[2]))
        << member.name << " was told of the loss of " << words[1]
        << ", which lives";
  } else if (words[0] == "unreachable" && words.size() == 3) {
    member.host_unreachable = Number(words[2]);
  } else if (words[0] == "progress" && words.size() == 3) {
    num_steps_ +=
        Number(words[1]) - std::exchange(member.steps, Number(words[1]));
    num_failed_steps_ +=
        Number(words[2]) - std::exchange(member.failed_steps, Number(words[2]));
  } else if (words[0] == "failed") {
    last_failure_ = absl::StrCat(member.name, ": ", line);
  } else if (words[0] == "census") {
    Census census;
    for (size_t i = 1; i < words.size(); ++i) {
      const std::pair<std::string, std::string> entry =
          absl::StrSplit(words[i], '=');
      census[entry.first] = Number(entry.second);
    }
    member.census = std::move(census);
  } else if (line == "fenced") {
    member.fenced = true;
    EXPECT_TRUE(victims_.contains(member.incarnation))
        << member.name << " was declared lost, but was never stopped";
  } else {
    ADD_FAILURE() << member.name << ": " << line;
  }
}

bool SoakJob::RunUntil(const std::function<bool()>& done,
                       absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    std::vector<pollfd> wanted;
    for (const auto& member : members_) {
      // A dead process has reported all, and its pipe is at its end.
      while (member->process != nullptr) {
        const auto line = member->process->ReadLine(absl::ZeroDuration());
        if (!line.has_value()) break;
        Handle(*member, *line);
      }
      if (member->process != nullptr &&
          member->process->Wait(absl::ZeroDuration()) == -1) {
        wanted.push_back({member->process->reports(), POLLIN, 0});
      }
    }
    if (done()) return true;
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    // Some ends of processes show only in Wait.
    (void)poll(wanted.data(), wanted.size(),
               static_cast<int>(absl::ToInt64Milliseconds(
                   std::min(left, absl::Milliseconds(100)))));
  }
}

int SoakJob::AwaitEnd(Member& member, absl::Duration limit) {
  (void)RunUntil(
      [&] { return member.process->Wait(absl::ZeroDuration()) != -1; }, limit);
  return member.process->Wait(absl::ZeroDuration());
}

void SoakJob::ExpectTold(const std::vector<std::string>& victims,
                         const std::vector<std::string>& incarnations,
                         int64_t since, absl::Duration limit) {
  for (const auto& member : members_) {
    if (std::count(victims.begin(), victims.end(), member->name) > 0) continue;
    for (size_t i = 0; i < victims.size(); ++i) {
      const absl::Duration passed = absl::Nanoseconds(NowNanoseconds() - since);
      if (!RunUntil([&] { return member->losses.contains(incarnations[i]); },
                    limit + options_.slack + absl::Seconds(1) - passed)) {
        ADD_FAILURE() << member->name << " was not told of the loss of "
                      << victims[i];
        continue;
      }
      const auto delay =
          absl::Nanoseconds(member->losses[incarnations[i]] - since);
      EXPECT_LE(delay, limit + options_.slack)
          << member->name << " was told late of the loss of " << victims[i];
      told_.Add(delay);
    }
  }
}

void SoakJob::Restart(const std::vector<std::string>& victims) {
  for (const std::string& name : victims) {
    if (!StartMember(Find(name))) return;
  }
  ExpectProgress();
}

void SoakJob::ExpectProgress() {
  std::map<std::string, int64_t> before;
  for (const auto& member : members_) before[member->name] = member->steps;
  for (const auto& member : members_) {
    if (!IsTrainer(*member)) continue;
    EXPECT_TRUE(
        RunUntil([&] { return member->steps >= before[member->name] + 2; },
                 kStepLimit + options_.slack))
        << member->name << " makes no progress";
  }
}

void SoakJob::SendAll(const std::string& command) {
  for (const auto& member : members_) member->process->WriteLine(command);
}

}  // namespace hawser::tests
